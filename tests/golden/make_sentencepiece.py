"""Trains small models with SentencePiece and writes them with the ids of texts.

    python3 tests/golden/make_sentencepiece.py     writes tests/golden/tokenizers/sp_*.model and sentencepiece.json

sentencepiece.json has a list of {"file", "cases": [{"text", "ids", "plain", "decoded"}]}. The goldens were written by
sentencepiece 0.2.3. `check FILE.model TEXTS [TENON]` compares the ids of every line of a file with those of `tenon
tokenize`, for models that are not committed.
"""
import json
import pathlib
import sys
import tempfile

import sentencepiece

from make_tokenizers import CORPUS, TEXTS

HERE = pathlib.Path(__file__).parent / "tokenizers"
RULES = "".join(f"{a}\t{b}\n" for a, b in (("A0", "20"), ("3000", "20"), ("FB01", "66 69"), ("B2", "32"), ("41 30A", "C5"),
                                           ("2163", "49 56"), ("200B", ""), ("65 301", "E9"), ("9", "20"), ("A", "20"),
                                           ("FF21", "41"), ("65 301 301", "EA"), ("2002", "20 20")))
MORE = ["▁▁a ▁ b", "a<sep>b <sep> c<sep><sep>", "e\u0301\u0301 e\u0301x A\u030a\u3000\u2002z", "<s> </s> <unk>",
        "x" * 70 + " the the" * 30, "   ", "the\u0000the", "𠀀𠀁 ??", "\u2002", "aaa\n\nbbb\n\n\nccc", "\n\nthe",
        "lower lowest newer " * 12 + "αβγ" * 9]
TRAINED = TEXTS[:6] * 4 + TEXTS[13:15] * 4 + CORPUS[-1:] * 4  # other texts have characters that no piece has
MODELS = {
    "unigram": dict(model_type="unigram", vocab_size=320, character_coverage=0.98, rules=RULES, user_defined_symbols=["<sep>", "ing"]),
    "bpe": dict(model_type="bpe", vocab_size=700, byte_fallback=True, character_coverage=0.98, normalization_rule_name="identity",
                remove_extra_whitespaces=False, split_digits=True, user_defined_symbols=["\n\n", "<sep>", "low"]),
    "plain": dict(model_type="bpe", vocab_size=400, character_coverage=0.98, add_dummy_prefix=False, rules=RULES),
    "char": dict(model_type="char", vocab_size=200, character_coverage=0.98, normalization_rule_name="identity"),
    "spaces": dict(model_type="unigram", vocab_size=700, split_by_whitespace=False, normalization_rule_name="identity",
                   remove_extra_whitespaces=False, add_dummy_prefix=False, byte_fallback=True, character_coverage=0.98),
}


def train(name, options):
    options = dict(options)
    with tempfile.TemporaryDirectory() as folder:
        rules = options.pop("rules", None)
        if rules is not None:
            (pathlib.Path(folder) / "rules.tsv").write_text(rules)
            options["normalization_rule_tsv"] = str(pathlib.Path(folder) / "rules.tsv")
        (pathlib.Path(folder) / "corpus.txt").write_text("\n".join(t.replace("\n", " ") for t in TRAINED))
        sentencepiece.SentencePieceTrainer.train(
            input=str(pathlib.Path(folder) / "corpus.txt"), model_prefix=str(pathlib.Path(folder) / "m"),
            hard_vocab_limit=False, minloglevel=2, num_threads=1, **options)
        (HERE / f"sp_{name}.model").write_bytes((pathlib.Path(folder) / "m.model").read_bytes())


def cases(name):
    model = sentencepiece.SentencePieceProcessor(model_file=str(HERE / f"sp_{name}.model"))
    for text in TEXTS + MORE:
        ids = model.encode(text)
        yield {"text": text, "ids": ids, "plain": ids, "decoded": model.decode(ids)}


def check(path, texts, tenon):
    import subprocess
    model = sentencepiece.SentencePieceProcessor(model_file=path)
    wrong = 0
    lines = pathlib.Path(texts).read_text().split("\n")
    for line in lines:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
            f.write(line)
            f.flush()
            run = subprocess.run([tenon, "tokenize", f.name, "--tokenizer", path], capture_output=True, text=True)
            ids = [int(x) for x in run.stdout.split()]
            wrong += ids != model.encode(line)
    print(f"{wrong} of {len(lines)} lines differ")


if __name__ == "__main__":
    if sys.argv[1:2] == ["check"]:
        check(sys.argv[2], sys.argv[3], (sys.argv + ["build/tools/tenon"])[4])
        sys.exit()
    for name, options in MODELS.items():
        train(name, options)
    goldens = [{"file": f"sp_{name}.model", "cases": list(cases(name))} for name in MODELS]
    (HERE / "sentencepiece.json").write_text(json.dumps(goldens, ensure_ascii=True, separators=(",", ":")) + "\n")
