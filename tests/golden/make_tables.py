#!/usr/bin/env python3
"""Writes tests/golden/tables: small awkward tables, and in expected.json what pandas.read_csv makes of them: for each
file a list of columns, [NAME, "number" or "text", [VALUES]], a missing value as null. Needs pandas."""
import gzip, io, json, math, os
import pandas as pd

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tables")
FILES = {
    "plain.csv": (b"a,b,c\n1,2.5,x\n-3,4e2,y\n", {}),
    "crlf.csv": (b"a,b\r\n1,x\r\n2,y\r\n", {}),
    "cr.csv": (b"a,b\r1,x\r2,y\r", {}),
    "no_last_newline.csv": (b"a,b\n1,x\n2,y", {}),
    "bom.csv": (b"\xef\xbb\xbfa,b\n1,x\n2,y\n", {}),
    "quoted.csv": (b'a,b\n1,"x, y"\n2,"say ""hello"""\n3,""\n', {}),
    "quoted_lines.csv": (b'a,b\n1,"two\nlines"\n2,"and\r\nmore"\n', {}),
    "quoted_numbers.csv": (b'"a","b"\n"1","2.5"\n"3","-4"\n', {}),
    "quote_inside.csv": (b'size,b\n5" pipe,1\n7" pipe,2\n', {}),
    "semicolons.csv": (b"a;b;c\n1;2,5;x\n3;4,5;y\n", {"sep": ";"}),
    "tabs.tsv": (b"a\tb\n1\tx y\n2\t\n", {"sep": "\t"}),
    "bars.txt": (b"a|b\n1|x,y\n2|z,w\n", {"sep": "|"}),
    "missing.csv": (b"a,b\n1,x\n,\nNA,NaN\nnull,N/A\n5,None\n", {}),
    "empty_lines.csv": (b"\na,b\n\n1,x\n   \n2,y\n\n", {}),
    "blanks.csv": (b"a,b\n 1, x \n 2 ,y\n", {}),
    "unicode.csv": ("größe,名前\n1,日本\n2,é\u0301\n3,🙂\n".encode(), {}),
    "one_column.csv": (b"a\n1\n2\n3\n", {}),
    "wide_numbers.csv": (b"a,b\n123456789012345678,1e-30\n0.1,3.4e38\n.5,5.\n+7,-0\n1e5,0.30000000000000004\n", {}),
    "digits.csv": (b"a,b\n3.14159265358979323846,2.2250738585072014e-38\n9007199254740993,1E+2\n", {}),
    "index.csv": (b",a,b\n0,1.5,x\n1,2.5,y\n", {}),
    "packed.csv.gz": (gzip.compress(b"a,b\n1,x\n2,y\n", mtime=0), {"compression": "gzip"}),
    "missing_words.csv": (b"a,b\n1,x\n#NA,-NaN\n1.#IND,#N/A N/A\n-1.#QNAN,<NA>\nn/a,y\n2,nan\n", {}),
    "last_delimiter.csv": (b"a,b,\n1,x,\n2,y,\n", {}),
    "blank_quote.csv": (b'a,b\n1, "x"\n2,"y "\n', {}),
    "bom_quoted.csv": (b'\xef\xbb\xbf"a","b"\r\n"1","x\ty"\r\n"2",""\r\n', {}),
    "quoted_header.csv": (b'"a, one","b c"\n1,x\n2,y\n', {}),
    "long_cell.csv": (b"a,b\n1," + b"word " * 4000 + b"end\n2,y\n", {}),
    "zeros.csv": (b"a,b\n007,1e0\n010,0.0\n000,-0.50\n", {}),
    "decimal_comma.csv": (b"a;b\n1,5;x\n-2;y\n,25;z\n", {"sep": ";", "decimal": ","}),
    "booleans.csv": (b"a,b\nTrue,1\nFalse,2\n", {}),
}


def value(v):
    if v is None or (isinstance(v, float) and math.isnan(v)) or v is pd.NA:
        return None
    return v if isinstance(v, str) else float(v)


def columns(data, options):
    frame = pd.read_csv(io.BytesIO(data), **options)
    result = []
    for name in frame.columns:
        numbers = pd.api.types.is_numeric_dtype(frame[name])
        shown = "" if name.startswith("Unnamed: ") else name
        if shown:
            result.append([shown, "number" if numbers else "text", [value(v) for v in frame[name].tolist()]])
    return result


os.makedirs(HERE, exist_ok=True)
expected = {}
for name, (data, options) in FILES.items():
    with open(os.path.join(HERE, name), "wb") as file:
        file.write(data)
    expected[name] = columns(data, options)
with open(os.path.join(HERE, "expected.json"), "w") as file:
    json.dump(expected, file, indent=1, ensure_ascii=False)
    file.write("\n")
