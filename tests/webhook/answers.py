"""Reviews and their answers, for the tests beside it."""

from __future__ import annotations

import orjson

from tests.webhook.samples import (
    Json,
    Known,
    labelled,
)
from webhook.owners import Lookup
from webhook.review import (
    Ask,
    Decision,
    Review,
    answer,
    decide,
    read_review,
)

GANG = Known(labelled())


def read(review: Json) -> Review:
    read = read_review(orjson.dumps(review))
    assert isinstance(read, Review), read
    return read


def decided(review: Json, lookup: Lookup = GANG) -> Decision:
    return decide(read(review), lookup)


def answer_to(review: Json, lookup: Lookup = GANG) -> Json:
    decision = decided(review, lookup)
    assert not isinstance(decision, Ask)
    answered: Json = orjson.loads(answer(read(review), decision))
    return answered
