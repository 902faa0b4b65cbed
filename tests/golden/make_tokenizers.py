"""Trains small tokenizers with Hugging Face's tokenizers and writes them with the ids of texts.

    python3 tests/golden/make_tokenizers.py        writes tests/golden/tokenizers/*.json

Each file is a tokenizer.json with one more member, "cases": [{"text", "ids", "plain", "decoded"}]: `ids` with the
template and `plain` without; `decoded` is the text of `plain` with special tokens. parts.json has a list of such
files, one for each normalizer and pre-tokenizer. Their model has a word for every piece that the reference cuts,
so that the ids show the cuts. The goldens were written by tokenizers 0.23.3.
"""
import base64
import json
import pathlib
import zlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent / "tokenizers"

TEXTS = [
    "The quick brown fox jumps over the lazy dog. It's the fox's dog, isn't it? They'll see, we've seen, I'd say!",
    "  two  spaces,   three,\ttabs\t\tand\n\nnew lines \r\n at the end   \n",
    "Straße, naïve café, Ærøskøbing, Žluťoučký kůň; ÀÉÎÕÜ and e\u0301 u\u0308 I\u0307 İstanbul ﬁ ² ½ Ⅷ",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Ёлка №5",
    "Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία. ΟΔΟΣ",
    "いろはにほへと ちりぬるを。東京都は日本の首都です。吾輩は猫である",
    "天地玄黃,宇宙洪荒。日月盈昃!辰宿列張?",
    "키스의 고유조건은 입술끼리 만나야 하고",
    "नमस्ते दुनिया, यह एक परीक्षण है। ऋषियों",
    "صِف خَلقَ خَودِ كَمِثلِ الشَمسِ إِذ بَزَغَت — ١٢٣",
    "שלום עולם, מה נשמע?",
    "สวัสดีชาวโลก ขอบคุณ",
    "Emoji: 😀👍🏽 👩‍👩‍👧‍👦 🇩🇪🏳️‍🌈 ❤️ ✨ and ☃",
    "for (int i = 0; i < 10; i++) { x[i] += 0x1F * 3.14e-2; } // __init__ snake_case camelCase HTTPServer",
    "{\"key\": [1, 22, 333, 4444, 55555], \"url\": \"https://example.org/a?b=c&d=%20e#f\"}",
    "a\u00a0b\u2003c\u180ed\u200be\ufefff\u3000g \u0085 zero\u0000nul \x7f del",
    "<s> hello </s><|endoftext|> world <pad>[MASK] a[MASK]b <mask> Hello<mask>there <word> keyword <word>s",
    "", " ", "\n", "a", " a", "▁a▁▁b", "##ing", "<0x41>", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚 𠀀𠀁",
]
CORPUS = TEXTS * 3 + ["the and ing tion low lower lowest new newer wide the the and 1234 2024 die der und ist " * 3]

GPT4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+")


# normalizer_spec.precompiled_charsmap of a model that sentencepiece 0.2 has trained with normalization_rule_tsv:
# U+00A0 and U+3000 -> a space, U+FB01 -> fi, U+00B2 -> 2, A U+030A -> U+00C5, U+2163 -> IV, U+200B -> nothing,
# U+0E33 -> U+0E4D U+0E32, e U+0301 -> U+00E9
CHARSMAP = zlib.decompress(base64.b64decode(
    "eNod03mwT2UYAODX73ZnzDTM9F/TUJaRCskulKWEqOxr1ux7tjbVj3EpslSWss8oe2Mt15Jw7S7ZSeGioo2oLAk9x5l55n2/b75z"
    "vvd7zzlxT7jyRe0aGZFbOhVjC0fcG5HOzZ+KEZkRBeVzM5MVkc4ge38qVhnfJx+Xmdwb6XTzVMwrEJGZ5IVSkR4akTUzFUvDM56K"
    "yG/+fgtX1o54QLRFFOIhHqQoRShOMUrQbXlGlBQf5lEeoRSPUYbSlOVxyvEEFShPJSpShco8SVWqUw0lRQ1q8jTKilo8Qx3q8iz1"
    "eI4G1Kchz/MCjXiJF2lCY5rRlBY0pxUtaUNr2tGW9rxMRzrQmU68Qpfk7HSlB93pRU/60Jt+9GUA/XmVgQxmENofQ3iNYbzB67zF"
    "m7zNcN7lHUYkL5EtCyNGilmMYgyjeZ/3GMdYxvMBE5nAh0ziYz5iCpOZxlQ+5RNmMJ1ZzGQOs8nTzLni2Z0R5zZFfC7/jAXMZxFK"
    "iyUs5guWsoxLGr1CXM6q5BvjS1azhq9YSzbrWcfXbOAbNrIZ20ZO0gO2sZUdbGcXSos97GYvuXzLPg6wn0Mc5AiHOcZRvuM433OC"
    "k/zAaU5xJukB55Ie8BM/cp6f+YUL/Mav/MHvydm5yGX+5C+u8A9/c42r3OA6N/mXW/zHHW7H3Z+vfDRoGd17RU5W5CyKvLXj87JX"
    "xv86NZ3v"))


def gpt2():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=420, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    return t


def llama3():
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(GPT4), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=420, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_special_tokens(["<|begin_of_text|>", "<|endoftext|>"])
    t.add_tokens([AddedToken("<mask>", lstrip=True), AddedToken("<word>", single_word=True, rstrip=True)])
    begin = t.token_to_id("<|begin_of_text|>")
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", begin)])])
    return t


def llama2():
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    # words for the trainer, none for the tokenizer, as the converted files have it
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=560, special_tokens=special, limit_alphabet=80, show_progress=False))
    data = json.loads(t.to_str())
    data["pre_tokenizer"] = None
    data["added_tokens"] = data["added_tokens"][:3]
    data["post_processor"] = json.loads(processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]).__getstate__())
    return Tokenizer.from_str(json.dumps(data))


def bert():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(CORPUS, trainers.WordPieceTrainer(
        vocab_size=420, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], limit_alphabet=160,
        show_progress=False))
    t.post_processor = processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]")))
    return t


def clip():
    """Suffixes of words, and a space in front of the text."""
    t = Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>", fuse_unk=False))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "),
                                         normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"),
                             "removed", invert=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, end_of_word_suffix="</w>",
        show_progress=False))
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.RobertaProcessing(("<|endoftext|>", 0), ("<|endoftext|>", 0), trim_offsets=False)
    return t


def unigram():
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Precompiled(CHARSMAP)
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.decoder = decoders.Metaspace()
    t.train_from_iterator(TEXTS[:2] * 5 + TEXTS[13:15] * 5, trainers.UnigramTrainer(
        vocab_size=200, unk_token="<unk>", special_tokens=["<unk>", "</s>"], show_progress=False))
    return t


def case(t, text):
    plain = t.encode(text, add_special_tokens=False).ids
    return {"text": text, "ids": t.encode(text).ids, "plain": plain,
            "decoded": t.decode(plain, skip_special_tokens=False)}


def golden(t, texts):
    return {**json.loads(t.to_str()), "cases": [case(t, text) for text in texts]}


PARTS = [
    (normalizers.NFC(), None), (normalizers.NFD(), None), (normalizers.NFKC(), None), (normalizers.NFKD(), None),
    (normalizers.Lowercase(), None), (normalizers.StripAccents(), None),
    (normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]), None),
    (normalizers.Strip(), None), (normalizers.Strip(left=False), None),
    (normalizers.BertNormalizer(lowercase=False), None), (normalizers.BertNormalizer(strip_accents=False), None),
    (normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False), None),
    (normalizers.Replace(Regex(r"\d+|(?=[A-Z])"), "<n>"), None), (normalizers.Prepend("x"), None), (normalizers.Precompiled(CHARSMAP), None),
    (None, pre_tokenizers.Whitespace()), (None, pre_tokenizers.WhitespaceSplit()),
    (None, pre_tokenizers.BertPreTokenizer()), (None, pre_tokenizers.Digits()),
    (None, pre_tokenizers.Digits(individual_digits=True)), (None, pre_tokenizers.Punctuation()),
    (None, pre_tokenizers.Punctuation("contiguous")), (None, pre_tokenizers.CharDelimiterSplit(",")),
    (None, pre_tokenizers.Metaspace()), (None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False)),
    (None, pre_tokenizers.Sequence([pre_tokenizers.Split(",", "isolated"), pre_tokenizers.Metaspace(prepend_scheme="first")])),
    (None, pre_tokenizers.Split(Regex(r"(?=[A-Z])|\w+"), "isolated")),
] + [(None, pre_tokenizers.Split(Regex(r"[\s,]"), behavior, invert)) for invert in (False, True) for behavior in
     ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous") if not (invert and behavior == "isolated")]
PART_TEXTS = ["  a\tb,, É e\u0301\n", "天a地,,b  c,ß ﬁ² Ⅷ", "HTTPServer x12 ٣४", "ก็ \u0301x नमस्ते दु", "a\u00a0b\u180ed\u200be\ufefff\u3000g \u0085h",
              "zero\u0000nul \x7f", "İ ΟΣ_x -¿d? $1", " trim  "]


def part(normalizer, split):
    pieces = ["?"]
    for text in PART_TEXTS:
        text = normalizer.normalize_str(text) if normalizer else text
        cut = [piece for piece, _ in split.pre_tokenize_str(text)] if split else [text]
        pieces += [piece for piece in cut if piece not in pieces]
    # a word is no key of JSON where it has U+0000; the unknown word takes its place in both
    t = Tokenizer(models.WordLevel({p: i for i, p in enumerate(pieces) if "\0" not in p}, unk_token="?"))
    if normalizer:
        t.normalizer = normalizer
    if split:
        t.pre_tokenizer = split
    return golden(t, PART_TEXTS)


def write(name, data):
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    (HERE / name).write_text(text + "\n")
    print(name, len(text.encode()))


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for make in (gpt2, llama3, llama2, bert, clip, unigram):
        write(make.__name__ + ".json", golden(make(), TEXTS))
    write("parts.json", [part(*p) for p in PARTS])
