from freshet.quality import DecisionMeter, WorkerMeter


def test_busy_share_is_of_all_workers():
    meter = WorkerMeter(start=10.0, workers=4)
    for _ in range(4):
        meter.busy(5.0)
    assert meter.share(now=20.0) == 0.5
    assert meter.units == 4


def test_running_units_show_as_busy():
    meter = WorkerMeter(start=0.0, workers=2)
    assert meter.share(now=8.0, running=[4.0, 0.0]) == 0.75
    assert meter.share(now=8.0, running=[9.0]) == 0.0


def test_shares_are_defined_before_time_has_passed():
    assert WorkerMeter(start=1.0).share(now=1.0) == 0.0
    assert DecisionMeter(start=1.0).share(now=1.0) == 0.0


def test_deciding():
    meter = DecisionMeter(start=0.0)
    meter.decided(0.5)
    meter.decided(0.5)
    assert (meter.share(now=4.0), meter.decisions) == (0.25, 2)
