"""How threads wait for work, said before OpenMP is loaded together with torch."""

import os

# How often GNU's OpenMP looks whether there is work before a thread sleeps: about 0.2 ms. By itself
# it looks for 6 ms, longer than a time slice. Beside another job, where a thread that is waited for
# does not run, each wait is that long, and there are a hundred in an epoch. Not to look at all
# costs a call of the system for every kernel.
SPINS = "10000"


def wait_briefly() -> None:
    """Unless the user has said how, let threads that wait for others sleep soon."""
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # other kinds of OpenMP know nothing in between
        os.environ["GOMP_SPINCOUNT"] = SPINS
