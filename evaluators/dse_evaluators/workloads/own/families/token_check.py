"""Check of token ids before a model with learned positions runs on them."""

from __future__ import annotations

from torch import Tensor

from dse.errors import EvaluationError


def check_tokens(tokens: Tensor, vocabulary: int, positions: int) -> None:
    """Raise EvaluationError unless a model has an embedding for each token and position.

    Args:
        tokens: token ids, (n, t).
        vocabulary: number of tokens of the model.
        positions: number of positions of the model.
    """
    if tokens.shape[1] > positions:
        raise EvaluationError(
            f"examples have {tokens.shape[1]} tokens, but the model has {positions} positions",
            hint=f"cut them: length: {positions}",
        )
    if int(tokens.max()) >= vocabulary or int(tokens.min()) < 0:
        raise EvaluationError(
            f"a token is {int(tokens.max())}, but the model has {vocabulary} tokens",
            hint="encode the text with the tokenizer of this model",
        )
