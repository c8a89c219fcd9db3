"""Names are listed as people count."""

from cli.report.order import natural


def test_numbers_in_names_count_by_their_size() -> None:
    names = ["gpu-2", "gpu-10", "gpu", "gpu-1", "a10-b2", "a10-b10", "a9", "7"]
    expected = ["7", "a9", "a10-b2", "a10-b10", "gpu", "gpu-1", "gpu-2", "gpu-10"]
    assert sorted(names, key=natural) == expected
