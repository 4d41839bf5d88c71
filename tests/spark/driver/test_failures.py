from __future__ import annotations

import pickle

import pytest
from py4j.protocol import Py4JNetworkError

from freshet.spark.driver.failures import Retry, message, retry_reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[SPARK_JOB_CANCELLED] Job 7 cancelled part of cancelled job group u1 SQLSTATE: XXKDA", "cancelled"),
        ("Traceback ...\nOSError: [Errno 28] No space left on device", "the disk is full"),
        ("Job aborted: ExecutorLostFailure (executor 1 exited)", "an executor was lost"),
        ("Cannot call methods on a stopped SparkContext.", "Spark was stopped"),
        ("[SPARK_JOB_CANCELLED] Job 0 cancelled because SparkContext was shut down SQLSTATE: X", "Spark was stopped"),
        ("[USER_RAISED_EXCEPTION] lost luggage SQLSTATE: P0001", None),
        # What an expression raises may hold any text of the data.
        ("[USER_RAISED_EXCEPTION] No space left on device SQLSTATE: P0001", None),
        ("most recent failure: Lost task 0.0 (TID 3) (h): org.x.E: [INVALID_FORMAT] the order was cancelled", None),
        ("[USER_RAISED_EXCEPTION] try the unit again: please", None),
        # A task that took its executor with it each time.
        ("Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 in stage 1.0 (TID 9) (h executor 7): "
         "ExecutorLostFailure (executor 7 exited caused by one of the running tasks) Reason: exited", None),
        ("Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 in stage 1.0 (TID 9) (h executor 7): "
         "ExecutorLostFailure (executor 7 exited unrelated to the running tasks) Reason: gone", "an executor was lost"),
        ("[DIVIDE_BY_ZERO] Division by zero.", None),
    ],
)  # fmt: skip
def test_who_is_to_blame(text: str, reason: str | None):
    assert retry_reason(RuntimeError(text)) == reason


def test_a_jvm_that_does_not_answer_is_nobodys_fault():
    for error in (Py4JNetworkError("Error while sending or receiving"), ConnectionRefusedError(111, "refused")):
        assert retry_reason(error) == "Spark's JVM does not answer"


def test_a_reason_survives_the_way_from_a_task():
    trace = (
        f"Traceback (most recent call last):\n ...\nfreshet.spark.driver.failures.Retry: {Retry('no train')}\n\tat java"
    )
    assert retry_reason(RuntimeError(trace)) == "no train"
    assert pickle.loads(pickle.dumps(Retry("no train"))).reason == "no train"


def test_a_message_is_one_short_line():
    aborted = (
        "Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 in "
        "stage 3.0 (TID 3) (localhost executor driver): java.lang.IllegalStateException: wrong turn\n\tat a.b(C.java:1)"
    )
    assert message(RuntimeError(aborted)) == "wrong turn"
    called = (
        "An error occurred while calling o517.collectAsList.\n: java.lang.OutOfMemoryError: Java heap space\n\tat a.b"
    )
    assert message(RuntimeError(called)) == "OutOfMemoryError: Java heap space"
    assert message(RuntimeError(called.replace(": Java heap space", ""))) == "OutOfMemoryError"
    assert len(message(RuntimeError("x" * 5000))) <= 400
    assert message(ValueError()) == "ValueError"
