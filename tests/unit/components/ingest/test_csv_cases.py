"""The kinds of fault that CSV files bring, one by one: what is kept, what is set aside, what is refused."""

from __future__ import annotations

import codecs
import gzip
from pathlib import Path

import pytest

from core.errors import ConfigError, DataError

pytestmark = pytest.mark.unit

IDS = "\n".join(f"{number},a{number}" for number in range(20))


def table(header: str, rows: list[str], end: str = "\n") -> str:
    """Returns a CSV text."""
    return end.join([header, *rows]) + end


def repeated(row: str, count: int = 30) -> list[str]:
    """Returns rows that differ in their first cell."""
    return [f"{number},{row}" for number in range(count)]


def test_quoted_header_names_may_hold_the_delimiter(write, run) -> None:
    """A header `id,"price, EUR",qty` has three columns."""
    result = run(write(table('id,"price, EUR",qty', repeated("9.50,2"))))
    assert [column["name"] for column in result.report.columns] == ["id", "price, EUR", "qty"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_byte_order_mark_and_line_ends_change_nothing(write, run, end: str) -> None:
    """A file with a BOM, with another line end or without the last one gives the bytes of the plain file."""
    text = table("id,name", repeated("x"))
    plain = run(write(text, "plain.csv"))
    marked = run(write(codecs.BOM_UTF8 + text.replace("\n", end).removesuffix(end).encode(), "marked.csv"))
    for split in ("train", "eval"):
        shard = Path(f"Split-{split}") / "data_tfrecord-00000-of-00001.gz"
        assert (plain.folder / shard).read_bytes() == (marked.folder / shard).read_bytes()


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
def test_undecodable_byte_is_refused_with_line_and_offset(write, run, line_end: bytes) -> None:
    """A cp1252 byte in a UTF-8 file names file, line, byte offset and the encoding that would do."""
    content = line_end.join([b"id,name", b"1,ann", b"2,caf\xe9", b"3,bob", b""])
    path = write(content)
    with pytest.raises(DataError) as caught:
        run(path)
    assert caught.value.place == f"{path}:3"
    assert f"offset {content.index(0xE9)}" in caught.value.headline
    assert "E9" in caught.value.headline
    assert "cp1252" in caught.value.hint


def test_other_encodings_load_when_declared(write, run) -> None:
    """The same text in cp1252 and in UTF-16 gives é and not a replacement."""
    text = table("id,name", repeated("café"))
    for encoding in ("cp1252", "utf-16", "utf-8-sig"):
        result = run(write(text.encode(encoding), f"{encoding}.csv"), csv__encoding=encoding)
        assert set(result.values("name")) == {"café".encode()}


def test_utf16_is_recognised(write, run) -> None:
    """A UTF-16 file is refused with the encoding to set, with and without its mark."""
    text = table("id,name", repeated("x"))
    for encoding, wanted in (("utf-16", "utf-16"), ("utf-16-le", "utf-16-le"), ("utf-16-be", "utf-16-be")):
        with pytest.raises(DataError) as caught:
            run(write(text.encode(encoding), "wide.csv"))
        assert caught.value.hint.endswith(wanted)


@pytest.mark.parametrize("encoding", ["klingon", "base64"])
def test_unknown_encoding_is_a_config_error(write, run, encoding: str) -> None:
    """A codec that does not exist, or is not one of text, is named."""
    with pytest.raises(ConfigError, match=encoding):
        run(write(table("id,name", repeated("x"))), csv__encoding=encoding)


def test_inch_signs_stay_two_records(write, run) -> None:
    """Quotes inside unquoted cells are text: nothing is glued."""
    rows = ['15" monitor,99', '24" monitor,149', *[f"cable {n},{n}" for n in range(20)]]
    result = run(write(table("name,price", rows)))
    assert result.report.rows_read == 22
    assert {b'15" monitor', b'24" monitor'} <= set(result.values("name"))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('"24" monitor,149', "text after a closing quote"),
        ('"24"" monitor,149', "never closed"),
        ('x,"149', "never closed"),
    ],
    ids=["text-after", "doubled-then-open", "open-at-end-of-line"],
)
def test_malformed_quotes_are_set_aside_alone(write, run, row: str, reason: str) -> None:
    """A row with a broken quote is one reject with its line; its neighbours are rows of their own."""
    rows = [f"cable {n},{n}" for n in range(10)]
    result = run(write(table("name,price", [*rows, row, *[f"plug {n},{n}" for n in range(10)]])), max_bad_share=0.1)
    assert result.report.rows_read == 21
    assert [(reject["line"], reject["raw"]) for reject in result.quarantine] == [(12, row)]
    assert reason in result.quarantine[0]["reason"]
    assert len(result.all_rows()) == 20


def test_semicolons_are_noticed(write, run) -> None:
    """A semicolon file under a comma is refused and names the mark; with the right settings 9,50 is 9.5."""
    path = write(table("id;price", [f"{n};9,50" for n in range(30)]))
    with pytest.raises(DataError, match="looks like ';'"):
        run(path)
    result = run(path, csv__delimiter=";", csv__decimal=",")
    assert set(result.values("price")) == {9.5}


@pytest.mark.parametrize("mark", ["\t", "|"], ids=["tab", "pipe"])
def test_other_delimiters_are_noticed(write, run, mark: str) -> None:
    """Tabs and pipes are noticed, also when the header holds a comma of its own."""
    text = "\n".join([mark.join(["id", "name, first"]), *[mark.join([str(n), f"a{n}"]) for n in range(20)]])
    with pytest.raises(DataError, match="looks like"):
        run(write(text))


@pytest.mark.parametrize("mark", [";", "\t"], ids=["semicolon", "tab"])
def test_a_ragged_row_does_not_hide_another_delimiter(write, run, mark: str) -> None:
    """One row too short among the first ones leaves the mark evident; text with a few such marks stays one column."""
    rows = [mark.join(["id", "name", "price"]), *[mark.join([str(n), "x", "9"]) for n in range(30)]]
    rows[7] = mark.join(["6", "x"])
    with pytest.raises(DataError, match="looks like") as caught:
        run(write("\n".join(rows)))
    assert repr(mark) in caught.value.headline
    notes = ["note; remark", *[f"a{n}; b" if n % 2 else f"a{n}" for n in range(30)]]
    assert run(write("\n".join(notes))).report.rows_read == 30


def test_decimal_commas_never_become_text_unseen(write, run) -> None:
    """With the delimiter set but not the decimal mark, 9,50 is refused and names the setting."""
    with pytest.raises(DataError, match=r"data\.csv\.decimal"):
        run(write(table("id;price", [f"{n};9,50" for n in range(30)])), csv__delimiter=";")


@pytest.mark.parametrize("last", ["", "7.5"], ids=["one-block", "later-fraction"])
def test_a_rare_fraction_names_its_row(write, run, last: str) -> None:
    """12E45 among whole-number codes makes the column float, and a warning names its line and text."""
    codes = [str(1000 + n) for n in range(400)]
    codes[7] = "12E3"
    codes[-1] = last or codes[-1]
    path = write(table("id,code", [f"a{n},{code}" for n, code in enumerate(codes)]))
    (warning,) = run(path).report.warnings
    assert f"{path}:9 holds '12E3'" in warning
    assert f"{2 if last else 1} of 400 numbers" in warning
    common = [f"a{n},{n}.5" if n % 20 == 0 else f"a{n},{n}" for n in range(400)]
    assert not run(write(table("id,code", common))).report.warnings


def test_thousands_or_decimals_are_not_guessed(write, run) -> None:
    """1,234 alone may be either and no mark is proposed; nor is the delimiter ever proposed as the decimal mark."""
    with pytest.raises(DataError, match="ambiguous") as caught:
        run(write(table("id;price", [f"{n};{n + 1},234" for n in range(30)])), csv__delimiter=";")
    assert "data.csv.decimal" not in caught.value.hint
    assert "data.types.price: text" in caught.value.hint
    with pytest.raises(DataError, match="another decimal mark") as caught:
        run(write(table("id,price", [f'{n},"9,5"' for n in range(30)])))
    assert "data.csv.decimal" not in caught.value.hint


def test_ragged_rows_are_set_aside_with_their_lines(write, run) -> None:
    """Row 57 with a cell too few and row 80 with one too many are two rejects of 100 rows."""
    rows = [f"{n},x,y" for n in range(1, 101)]
    rows[56] = "57,x"
    rows[79] = "80,x,y,z"
    path = write(table("id,a,b", rows))
    result = run(path, max_bad_share=0.02)
    assert [(reject["line"], reject["raw"]) for reject in result.quarantine] == [(58, "57,x"), (81, "80,x,y,z")]
    assert result.report.rows_read == 100
    assert sum(result.report.rows_written.values()) == 98
    assert result.report.balances()


def test_too_many_bad_rows_refuse_the_data(write, run) -> None:
    """Above the share the run is refused with counts, the first place and the quarantine file."""
    rows = [f"{n},x" for n in range(98)] + ["98", "99"]
    path = write(table("id,a", rows))
    with pytest.raises(DataError) as caught:
        run(path, max_bad_share=0.01)
    assert "2 of 100 rows (2.00%)" in caught.value.headline
    assert caught.value.place == f"{path}:100"
    assert "quarantine.jsonl" in caught.value.hint
    assert caught.value.exit_code == 4


def test_nothing_is_written_when_refused(write, run, tmp_path: Path) -> None:
    """A refused ingestion leaves no split behind, but its quarantine and report."""
    with pytest.raises(DataError):
        run(write(table("id,a", ["1,2", "3"])))
    assert not list(tmp_path.glob("out-0/Split-*/*"))
    assert not list(tmp_path.glob("out-0/Split-*/.*"))
    assert (tmp_path / "out-0/report/quarantine.jsonl").read_text().count("\n") == 1


@pytest.mark.parametrize("header", ["id,price,price", "id,price, price ", 'id,price,"price"'], ids=repr)
def test_duplicate_names_are_refused_with_both_positions(write, run, header: str) -> None:
    """A name that occurs twice, also after trimming, is an error that gives both positions."""
    with pytest.raises(DataError, match="positions 2 and 3"):
        run(write(table(header, repeated("1,2"))))


def test_unnamed_column_is_refused(write, run) -> None:
    """A header cell without a name is an error with its position."""
    with pytest.raises(DataError, match="column 2"):
        run(write(table("id,,b", repeated("1,2"))))


def test_missing_header_is_noticed(write, run) -> None:
    """A first row of numbers alone is no header."""
    with pytest.raises(DataError, match="header is missing"):
        run(write(table("1,2.5,3", repeated("1,2"))))


def test_empty_files_are_skipped_by_name(write, run, tmp_path: Path) -> None:
    """A 0-byte file and a file with only a header are skipped and warned about."""
    write(table("id,name", repeated("x")), "in/a.csv")
    write("", "in/b.csv")
    write("id,name\n", "in/c.csv")
    result = run(tmp_path / "in")
    assert {skip["name"] for skip in result.report.skipped} == {"b.csv", "c.csv"}
    assert result.report.rows_read == 30
    assert len(result.report.warnings) == 2


@pytest.mark.parametrize("content", ["", "id,name\n", "\n\n"], ids=["empty", "header-only", "blank-lines"])
def test_no_row_at_all_is_refused(write, run, content: str) -> None:
    """Zero rows in total is an error at ingestion."""
    with pytest.raises(DataError, match="no"):
        run(write(content))


def test_all_rows_bad_is_refused_whatever_the_share(write, run) -> None:
    """Even when every row may be bad, nothing to train on is an error."""
    path = write(table("id,name", ["1", "2", "3"]))
    with pytest.raises(DataError, match="every row was set aside, 3 of 3; the first: 1 cells"):
        run(path, max_bad_share=1.0)
    for method in ({}, {"split__method": "time", "split__column": "id"}):
        with pytest.raises(DataError, match="3 of 3 rows") as caught:
            run(path, **method)
        assert caught.value.place == f"{path}:2"


def test_long_identifiers_do_not_flip_the_type_unseen(write, run) -> None:
    """One 20-digit number among 13-digit ones is refused naming its row; declared as text all are kept."""
    rows = [f"{n},{4006381333930 + n}" for n in range(50)]
    rows[33] = "33,12345678901234567890"
    path = write(table("id,article", rows))
    with pytest.raises(DataError) as caught:
        run(path)
    assert caught.value.place == f"{path}:35"
    assert "12345678901234567890" in caught.value.headline
    assert "data.types.article: text" in caught.value.hint
    result = run(path, types={"article": "text"})
    assert b"12345678901234567890" in result.values("article")
    assert len(result.values("article")) == 50


def test_leading_zeros_stay_text(write, run) -> None:
    """Postal codes keep their zeros, and the report says which cell decided."""
    rows = [f"{n},{10000 + n}" for n in range(40)]
    rows[7] = "7,01067"
    result = run(write(table("id,zip", rows)))
    assert b"01067" in result.values("zip")
    assert any("'zip'" in warning and ":9 " in warning for warning in result.report.warnings)


@pytest.mark.parametrize("token", ["n.a.", "-", "unknown", "$5", "1,234"], ids=repr)
def test_one_odd_cell_among_numbers_is_named(write, run, token: str) -> None:
    """A token that is no number in a column of numbers is an error with token and line, not a text column."""
    rows = [f"{n},{n}.5" for n in range(200)]
    rows[100] = f'100,"{token}"'
    path = write(table("id,price", rows))
    with pytest.raises(DataError) as caught:
        run(path)
    assert caught.value.place == f"{path}:102"
    assert repr(token) in caught.value.headline


def test_null_tokens_are_missing(write, run) -> None:
    """Configured tokens, empty cells and padded tokens in number columns have no value and keep the type."""
    rows = [f"{n},{n}" for n in range(100)]
    rows[3], rows[4], rows[5], rows[6] = "3,N/A", "4,", "5, NULL ", "6,   "
    result = run(write(table("id,count", rows)))
    column = result.report.columns[1]
    assert (column["type"], column["missing"]) == ("integer", 4)
    assert len(result.values("count")) == 96


def test_declared_numbers_set_odd_rows_aside(write, run) -> None:
    """With a declared type the odd row goes to quarantine with column, token and line."""
    rows = [f"{n},{n}" for n in range(200)]
    rows[10], rows[11] = "10,abc", "11,9223372036854775808"
    result = run(write(table("id,count", rows)), types={"count": "integer"})
    assert [reject["line"] for reject in result.quarantine] == [12, 13]
    assert "'abc' is not a whole number" in result.quarantine[0]["reason"]
    assert "64 bits" in result.quarantine[1]["reason"]
    assert result.quarantine[0]["raw"] == "10,abc"


@pytest.mark.parametrize("token", ["nan", "NaN", "inf", "-Infinity", "1e999", "1e39"], ids=repr)
def test_non_finite_numbers_are_missing_or_refused_and_counted(write, run, token: str) -> None:
    """nan, inf and what float32 cannot hold never reach the model."""
    rows = [f"{n},{n}.5" for n in range(200)]
    rows[50] = f"50,{token}"
    path = write(table("id,price", rows))
    result = run(path)
    assert result.report.columns[1]["non_finite"] == 1
    assert result.report.rows_set_aside == 0
    assert len(result.values("price")) == 199
    refused = run(path, non_finite="refuse")
    assert [reject["line"] for reject in refused.quarantine] == [52]
    assert refused.report.columns[1]["missing"] == 0


def test_non_finite_text_does_not_make_whole_numbers_floats(write, run) -> None:
    """A column of whole numbers with one nan stays a column of whole numbers."""
    rows = [f"{n},{n}" for n in range(50)]
    rows[20] = "20,nan"
    assert run(write(table("id,count", rows))).report.columns[1]["type"] == "integer"


def test_empty_column_is_named(write, run) -> None:
    """A column without any value is left out with a warning, or refused by policy."""
    path = write(table("id,none,name", repeated(",x")))
    result = run(path)
    assert result.report.excluded == ["none"]
    assert any("'none' has no values" in warning for warning in result.report.warnings)
    with pytest.raises(DataError, match="'none' has no values"):
        run(path, empty_columns="refuse")


def test_line_breaks_in_quotes_are_kept_and_lines_still_count(write, run) -> None:
    """Quoted line breaks stay in one record, and a later reject has its true line."""
    rows = [f'{n},"first\nsecond {n}"' for n in range(100)] + ["100"]
    result = run(write(table("id,text", rows)), max_bad_share=0.02)
    assert result.values("text")[0] == b"first\nsecond 0"
    assert result.report.rows_read == 101
    assert result.quarantine[0]["line"] == 202


def test_quoted_delimiters_and_doubled_quotes(write, run) -> None:
    """Delimiters and doubled quotes in quoted cells are text."""
    rows = [*repeated('"a, ""b"""'), '99,""']
    result = run(write(table("id,text", rows)))
    assert set(result.values("text")) == {b'a, "b"'}
    assert result.report.columns[1]["missing"] == 1


def test_quotes_can_be_switched_off(write, run) -> None:
    """With quote null a quote is a character like any other."""
    result = run(write(table("id,text", repeated('"x'))), csv__quote=None)
    assert set(result.values("text")) == {b'"x'}


def test_nul_rows_are_set_aside(write, run) -> None:
    """A NUL character is never part of a value."""
    rows = repeated("x", 200)
    rows[20] = "20,a\0b"
    result = run(write(table("id,text", rows)))
    assert [reject["line"] for reject in result.quarantine] == [22]
    assert "NUL" in result.quarantine[0]["reason"]


def test_a_nul_among_the_first_rows_is_one_reject(write, run) -> None:
    """A NUL near the header sets its row aside alone; one in the header is an error with the header's line."""
    rows = repeated("x")
    rows[2] = "2,a\0b"
    result = run(write(table("id,name", rows)), max_bad_share=0.1)
    assert [(reject["line"], "NUL" in reject["reason"]) for reject in result.quarantine] == [(4, True)]
    path = write("\n\n" + table("id,na\0me", repeated("x")))
    with pytest.raises(DataError, match="the header cannot be read: it holds a NUL") as caught:
        run(path)
    assert caught.value.place == f"{path}:3"


def test_columns_are_matched_by_name_between_files(write, run, tmp_path: Path) -> None:
    """A second file may order its columns otherwise; its cells go to the right names."""
    write(table("id,name", repeated("x")), "in/a.csv")
    write(table("name,id", [f"y,{n}" for n in range(30)]), "in/b.csv")
    result = run(tmp_path / "in")
    assert set(result.values("name")) == {b"x", b"y"}
    assert result.report.columns[0]["type"] == "integer"


def test_other_columns_in_a_later_file_are_refused(write, run, tmp_path: Path) -> None:
    """A file that lacks or adds columns is named with them."""
    write(table("id,name", repeated("x")), "in/a.csv")
    second = write(table("id,nmae", repeated("x")), "in/b.csv")
    with pytest.raises(DataError, match="lacks 'name' and adds 'nmae'") as caught:
        run(tmp_path / "in")
    assert caught.value.place == str(second)


def test_type_conflicts_between_files_name_the_later_file(write, run, tmp_path: Path) -> None:
    """A column of numbers that holds text in another file names that file and line."""
    write(table("id,count", repeated("1")), "in/a.csv")
    second = write(table("id,count", ["1,one"]), "in/b.csv")
    with pytest.raises(DataError) as caught:
        run(tmp_path / "in")
    assert caught.value.place == f"{second}:2"


def test_gzip_is_told_by_content(write, run) -> None:
    """A gzip CSV is read whatever its name is; a cut one is refused by name."""
    packed = gzip.compress(table("id,name", repeated("x" * 50, 3000)).encode())
    assert run(write(packed, "table.csv")).report.rows_read == 3000
    with pytest.raises(DataError, match="cut short or damaged"):
        run(write(packed[: len(packed) // 2], "cut.csv.gz"))


@pytest.mark.parametrize(
    ("magic", "what"),
    [(b"PK\x03\x04rest", "spreadsheet"), (b"PAR1rest", "Parquet"), (b"BZh91AY", "bzip2"), (b"\n<HTML>", "web")],
    ids=["zip", "parquet", "bzip2", "html"],
)
def test_files_of_another_kind_are_named(write, run, magic: bytes, what: str) -> None:
    """A spreadsheet, a Parquet file or another compression is told by its first bytes."""
    with pytest.raises(DataError, match=what):
        run(write(magic))


def test_booleans(write, run) -> None:
    """Both true and false in any case become 1 and 0."""
    rows = [f"{n},{'True' if n % 2 else 'false'}" for n in range(30)]
    result = run(write(table("id,flag", rows)))
    assert result.report.columns[1]["type"] == "boolean"
    assert result.values("flag") == [0] * 15 + [1] * 15


def test_dates_are_text(write, run) -> None:
    """Dates, with or without leading zeros, are text."""
    result = run(write(table("id,us,iso", [f"{n},0{1 + n % 9}/02/2024,2024-01-{10 + n % 9}" for n in range(30)])))
    assert [column["type"] for column in result.report.columns] == ["integer", "text", "text"]


def test_padded_numbers(write, run) -> None:
    """Blanks around numbers do not make them text."""
    result = run(write(table("id, price", [f"{n}, {n}.5" for n in range(30)])))
    assert result.report.columns[1]["name"] == "price"
    assert result.report.columns[1]["type"] == "float"


def test_mixed_identifiers_are_text(write, run) -> None:
    """Identifiers that mix letters and digits are text as a whole."""
    rows = [f"{n},{'A' if n % 3 else ''}{n}" for n in range(30)]
    result = run(write(table("id,ticket", rows)))
    assert result.report.columns[1]["type"] == "text"
    assert len(result.values("ticket")) == 30


def test_rounded_identifiers_are_warned_about(write, run) -> None:
    """Whole numbers of nine digits and more in a float column are named, because float32 rounds them."""
    rows = [f"{n},{123456789000 + n}" for n in range(30)] + ["99,1.5"]
    result = run(write(table("id,number", rows)))
    assert any("'number'" in warning and "rounded" in warning for warning in result.report.warnings)


def test_unknown_declared_column_is_a_config_error(write, run) -> None:
    """A type for a column that is not there names the nearest one."""
    with pytest.raises(ConfigError, match="did you mean 'price'"):
        run(write(table("id,price", repeated("1"))), types={"prise": "float"})
