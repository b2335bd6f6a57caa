"""Payments with fraud labels on edges: a row of predictions is a row of the edges table."""

import csv
import random
from pathlib import Path
from tempfile import TemporaryDirectory

import edgewise as ew
from edgewise import runs

draw = random.Random(0)
thieves = {f"account {i}" for i in range(6)}  # they pay by card, late, in small parts
rows = []
for when in range(1500):
    payer, payee = (f"account {draw.randrange(60)}" for _ in range(2))
    by_thief = payer in thieves and draw.random() < 0.7
    amount = draw.uniform(1, 20) if by_thief else draw.uniform(5, 200)
    kind = "card" if by_thief or draw.random() < 0.5 else "cash"
    rows.append((payer, payee, round(amount, 2), kind, when, int(by_thief)))

with TemporaryDirectory() as folder:
    payments = Path(folder, "payments.csv")
    with payments.open("w", newline="") as stream:
        header = ("source", "target", "amount", "kind", "when", "fraud")
        csv.writer(stream).writerows([header, *rows])

    settings = {"predict": "edges", "target": "fraud", "epochs": 40, "hidden": 16}
    # Earlier payments train, later ones test; messages come from earlier payments alone.
    settings |= {"time_column": "when", "label_messages": True}  # known frauds are features
    run = ew.train(payments, Path(folder, "run"), **settings)
    print(run.metrics["headline"], run.metrics["test"]["roc_auc"] > 0.9)  # roc_auc True

    runs.predict(run.folder, out=Path(folder, "predictions.csv"))
    with Path(folder, "predictions.csv").open() as stream:
        first = next(csv.DictReader(stream))
    print(list(first)[:3])  # ['row', 'source', 'target']
    print(first["row"], first["source"] == rows[0][0])  # 0 True
