"""Ranking from queries, from pairs and by the textbook: `python examples/ranking.py`.

A shop answers searches. Each search (a query) shows some offers (rows), and people's behaviour says
how relevant each was: 0 (ignored) to 3 (bought). Offers of one search are compared with each other,
never with those of another: how happy people are in general does not matter, which offer they
prefer does. The program

1. fits a ranker to searches and looks at searches that it has not seen,
2. lets held-out searches decide how many rounds there are,
3. compares losses, stumps and trees,
4. fits to preferences "this offer rather than that one", without any levels,
5. runs RankBoost as the textbook has it, and checks its bound.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu import BoostingRanker, cross_validate, metrics


def searches(n_queries, seed, n_offers=20):
    """Offers with price, rating, distance, age and two numbers that mean nothing.

    `mood` moves all offers of a search up or down: ranking must not care.
    """
    rng = np.random.default_rng(seed)
    n = n_queries * n_offers
    qid = np.repeat(np.arange(n_queries), n_offers)
    X = rng.normal(size=(n, 6))
    price, rating, distance, age = X[:, :4].T
    wish = -price + 0.8 * rating - 0.6 * np.abs(distance) - 2.0 * ((price > 0) & (age > 0))
    mood = rng.normal(size=n_queries)[qid]
    relevance = np.digitize(wish + mood + 0.7 * rng.normal(size=n), [0.0, 1.0, 2.0])
    return X, relevance, qid


def preferences(relevance, qid, n_pairs, seed=0):
    """Some pairs of offers of one search, the preferred one first."""
    rng = np.random.default_rng(seed)
    above, below = np.nonzero(
        (relevance[:, None] > relevance[None, :]) & (qid[:, None] == qid[None, :])
    )
    drawn = rng.choice(len(above), n_pairs, replace=False)
    return np.column_stack([above[drawn], below[drawn]])


def judged(model, X, relevance, qid):
    """The share of pairs in the wrong order, and NDCG of the first five ranks."""
    scores = model.predict(X)
    wrong = metrics.pairwise_error(relevance, scores, qid=qid)
    return f"pairwise error {wrong:.3f}, NDCG@5 {metrics.ndcg(relevance, scores, qid=qid, k=5):.3f}"


def main(n_queries=300, n_rounds=200):
    X, relevance, qid = searches(n_queries, seed=0)
    test = searches(n_queries, seed=1)

    # 1. Rows may come in any order; qid says which belong together.
    model = BoostingRanker(n_estimators=n_rounds).fit(X, relevance, qid=qid)
    print("stumps:            ", judged(model, *test))
    X_test, _, qid_test = test
    first = np.flatnonzero(qid_test == 0)
    order = first[np.argsort(-model.predict(X_test[first]))]
    print("the first search, best offers first:", order[:5].tolist())

    # 2. Whole searches are held out, and the round that misorders fewest of their pairs is kept.
    model = BoostingRanker(early_stopping=True, metric="pairwise_error", n_iter_no_change=50)
    model.fit(X, relevance, qid=qid)
    print(f"stopped early:      {judged(model, *test)}, {model.n_estimators_} rounds")

    # 3. Stumps add up to one function a feature. Trees also see what old and dear mean together.
    for loss in ("exponential", "logistic", "lambda"):
        trees = BoostingRanker(loss, max_depth=3, n_estimators=n_rounds)
        print(f"{'trees, ' + loss + ':':20s}{judged(trees.fit(X, relevance, qid=qid), *test)}")
    found = cross_validate(
        BoostingRanker(n_estimators=n_rounds), X, relevance, qid=qid, cv=3, rounds="all",
        metrics="ndcg@5",
    )  # fmt: skip
    print("best number of stumps by cross-validation over searches:", found.best_round)

    # 4. Pairs take the place of relevance and qid.
    pairs = preferences(relevance, qid, 5 * n_queries)
    model = BoostingRanker(n_estimators=n_rounds).fit(X, pairs=pairs)
    print(f"{len(pairs)} pairs:         {judged(model, *test)}")

    # 5. The product of all Z is the loss, which bounds the share of misordered pairs.
    book = BoostingRanker(variant="rankboost", n_estimators=n_rounds).fit(X, relevance, qid=qid)
    print("RankBoost:         ", judged(book, *test))
    wrong = metrics.pairwise_error(relevance, book.predict(X), qid=qid)
    R = book.history_.Z.prod()
    print(f"  of the training pairs {wrong:.3f} are misordered, at most R = {R:.3f}")


if __name__ == "__main__":
    main()
