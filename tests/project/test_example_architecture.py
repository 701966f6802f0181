"""The developer's guide adds an architecture with a patch: in a copy with it, logits are transformers' and the course works."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from autograder.parts import GRADED_MODULES
from tests.project.shell import shell
from tests.project.tree import ROOT, copy_tracked

PATCH = ROOT / "docs/examples/mistral.patch"
pytestmark = pytest.mark.skipif(
    "MistralForCausalLM" in (ROOT / "minisgl/models/register.py").read_text(encoding="utf-8"),
    reason="the patch is in this clone already",
)

PROMPTS = [[3, 14, 15, 92, 65], [35], [89, 79, 32, 38, 46, 26, 43]]
FIELDS = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 131,
    "max_position_embeddings": 128,
    "sliding_window": None,
    "bos_token_id": None,
    "eos_token_id": None,
}
PROGRAM = """
import json, sys
from minisgl.engine import Engine
print(json.dumps(Engine(sys.argv[1], progress=False).logits(json.loads(sys.argv[2])).tolist()))
"""


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory):
    """A random model of transformers and the folder it is saved in."""
    from transformers import MistralConfig, MistralForCausalLM

    torch.manual_seed(0)
    model = MistralForCausalLM(MistralConfig(**FIELDS)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn_like(parameter)
            parameter.copy_(1 + 0.3 * noise if "norm" in name else noise / 5)
    folder = tmp_path_factory.mktemp("mistral")
    model.save_pretrained(folder)
    return model, folder


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the clone that has the patch in it."""
    folder = copy_tracked(tmp_path_factory.mktemp("patched"))
    # A repository above the copy would make git take the patch's paths for paths in that one.
    alone = {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
    shell("git apply docs/examples/mistral.patch", cwd=folder, environment=alone)
    return folder


def ask(tree: Path, model_folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, "-c", PROGRAM, str(model_folder), json.dumps(PROMPTS)]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)


def test_the_patched_package_computes_mistral_s_logits(oracle, patched: Path):
    model, folder = oracle
    done = ask(patched, folder)
    assert done.returncode == 0, done.stderr
    with torch.no_grad():
        expected = torch.stack([model(torch.tensor([prompt])).logits[0, -1] for prompt in PROMPTS])
    ours = torch.tensor(json.loads(done.stdout))
    # float32 on both sides: the same sums in another order at most.
    assert (ours - expected).abs().max() < 1e-4 * expected.abs().max()


def test_a_sliding_window_is_still_refused(oracle, patched: Path, tmp_path: Path):
    _, folder = oracle
    shutil.copytree(folder, tmp_path / "windowed")
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "windowed/config.json").write_text(json.dumps({**config, "sliding_window": 4096}))
    done = ask(patched, tmp_path / "windowed")
    assert done.returncode == 1
    assert "sliding_window is 4096, but only full attention is computed" in done.stderr


def test_without_the_patch_mistral_is_refused_by_name(oracle):
    _, folder = oracle
    done = ask(ROOT, folder)
    assert done.returncode == 1
    assert "'MistralForCausalLM'" in done.stderr and "Choose a checkpoint of one of these." in done.stderr


def test_the_patched_clone_still_checks_parts(patched: Path, tmp_path: Path):
    """A student who wrote what the reference has passes, in chapter 01 and with the new class."""
    for module in GRADED_MODULES:
        target = tmp_path / "minisgl" / module
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(patched / "minisgl" / module, target)
    there = {"PYTHONPATH": str(patched), "MINISGL_WORKSPACE": str(tmp_path)}
    said = shell("python -m autograder check config.head_dim", cwd=patched, environment=there)
    assert "config.head_dim: all public checks passed" in said
    said = shell("python -m autograder check decoder.architectures", cwd=patched, environment=there)
    assert "decoder.architectures: all public checks passed" in said


def test_the_patched_clone_still_makes_a_student_kit_without_the_new_class(patched: Path, tmp_path: Path):
    there = {"PYTHONPATH": str(patched)}
    said = shell("python -m autograder release", more=f"--out {tmp_path}", cwd=patched, environment=there)
    kit = tmp_path / "minisgl-course"
    assert f"{kit}\n" in said
    assert not (kit / "minisgl/models/decoder.py").exists()
    assert "class MistralForCausalLM" not in "".join(path.read_text() for path in kit.rglob("*.py"))
    assert "MistralForCausalLM" in (kit / "autograder/parts.py").read_text()


def test_the_patched_clone_keeps_its_wrong_and_right_solutions(patched: Path):
    """Each entry's text is found in the reference, and no part of the reference is left over."""
    program = (
        "from autograder.text import reference\n"
        "from autograder.parts import PARTS\n"
        "from autograder.authoring.wrong_solutions import entries, text_of\n"
        "assert all(reference.piece(part.id) for part in PARTS if not part.together)\n"
        "texts = [text_of(entry) for kind in ('wrong', 'right') for entry in entries(kind)\n"
        "         if entry['part'] == 'decoder.architectures']\n"
        "assert len(texts) > 3 and all('MistralForCausalLM' in text for text in texts)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(patched)}
    done = subprocess.run([sys.executable, "-c", program], cwd=patched, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_patch_is_a_few_lines():
    lines = PATCH.read_text().splitlines()
    added = [line for line in lines if line.startswith("+") and not line.startswith("+++")]
    assert len(added) <= 24
