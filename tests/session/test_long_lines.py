"""A line without end costs linear time and bounded memory, and the stream goes on behind it."""

import os
import threading
import time

from mtmc_engine.core.events import Stop
from mtmc_engine.core.lines import LONGEST_LINE, read_lines
from mtmc_engine.session.inbox import Inbox


def stream(data):
    """A descriptor from which the data can be read."""
    reader, writer = os.pipe()

    def write():
        view = memoryview(data)
        while view:
            view = view[os.write(writer, view) :]
        os.close(writer)

    threading.Thread(target=write, daemon=True).start()
    return reader


def test_lines_are_cut_as_they_are():
    assert list(read_lines(stream(b"one\n\ntwo\nrest"))) == [b"one", b"", b"two", b"rest"]
    assert list(read_lines(stream(b""))) == []


def test_lines_across_chunks():
    lines = [bytes([65 + number % 26]) * (number * 977) for number in range(200)]
    assert list(read_lines(stream(b"\n".join(lines) + b"\n"))) == lines


def test_a_long_line_keeps_its_first_bytes_only():
    assert list(read_lines(stream(b"x" * 50 + b"\nnext\n"), longest=10)) == [b"x" * 11, b"next"]
    assert list(read_lines(stream(b"x" * 10 + b"\n" + b"y" * 12), longest=10)) == [
        b"x" * 10,
        b"y" * 11,
    ]


def test_fifty_megabytes_in_linear_time():
    began = time.process_time()
    lines = list(read_lines(stream(b"x" * 50_000_000 + b"\nnext\n")))
    assert [len(line) for line in lines] == [LONGEST_LINE + 1, 4]
    assert time.process_time() - began < 2  # 0.05 s; quadratic, it was minutes


def test_the_inbox_refuses_it_and_goes_on():
    complaints = []
    inbox = Inbox(complaints.append)
    inbox.receive(b"x" * (LONGEST_LINE + 1))
    inbox.receive(b'{"command": "stop"}')
    (complaint,) = complaints
    assert "longer than 4 MB" in complaint
    assert inbox.next_request() == Stop()
