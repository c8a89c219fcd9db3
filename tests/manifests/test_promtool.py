"""promtool finds nothing in the metrics, the alerts and the dashboards."""

from pathlib import Path

import pytest
import yaml

from tests.manifests.test_monitoring import expressions, pages, rules
from tests.prometheus import filled_in, promtool, write_rules

# The first of them builds promtool, which takes minutes.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


def test_promtool_finds_nothing_in_the_metrics() -> None:
    for page in pages():
        assert promtool("check", "metrics", given=page) == ""


def test_promtool_finds_nothing_in_the_alerts(tmp_path: Path) -> None:
    path = write_rules(tmp_path / "rules.yaml", rules())
    said = promtool("check", "rules", "--lint=all", "--lint-fatal", str(path))
    assert f"SUCCESS: {len(rules())} rules found" in said


def test_promtool_reads_the_expression_of_every_panel(tmp_path: Path) -> None:
    recorded = [
        {"record": f"panel:{at}", "expr": filled_in(text)}
        for at, (_, text) in enumerate(expressions())
    ]
    path = write_rules(tmp_path / "panels.yaml", recorded)
    assert f"SUCCESS: {len(recorded)} rules found" in promtool("check", "rules", str(path))


@pytest.mark.parametrize(
    ("alert", "series", "fires"),
    [
        ("MusterNoLeader", {"muster_leader": "0x20"}, True),
        (
            "MusterNoLeader",
            {'muster_leader{pod="a"}': "1x20", 'muster_leader{pod="b"}': "0x20"},
            False,
        ),
        ("MusterWatchBlind", {'muster_watch_blind{resource="pods"}': "1x20"}, True),
        (
            "MusterCertificateExpires",
            {"muster_extender_certificate_expiry_timestamp_seconds": f"{20 * 86400}x90"},
            True,
        ),
        (
            "MusterCertificateExpires",
            {"muster_webhook_certificate_expiry_timestamp_seconds": f"{29 * 86400}x90"},
            False,
        ),
        (
            "MusterCertificateExpires",
            {"muster_extender_caller_certificate_expiry_timestamp_seconds": f"{20 * 86400}x90"},
            True,
        ),
        (
            "MusterCertificateExpires",
            {"muster_extender_caller_certificate_expiry_timestamp_seconds": "0x90"},
            False,
        ),
        (
            "MusterCertificatesNotKept",
            {'muster_certs_looked_timestamp_seconds{secret="a"}': "60x90"},
            True,
        ),
        (
            "MusterCertificatesNotKept",
            {'muster_certs_looked_timestamp_seconds{secret="a"}': "0+60x90"},
            False,
        ),
        (
            "MusterCertificatesNotKept",
            {
                'muster_certs_looked_timestamp_seconds{secret="a"}': "0+60x90",
                "muster_certs_failures_total": "0+12x90",
            },
            True,
        ),
        (
            "MusterSchedulerFilesOld",
            {
                "muster_extender_caller_certificate_expiry_timestamp_seconds": "9000000x1500",
                'muster_certs_expiry_timestamp_seconds{certificate="client"}': "9900000x1500",
            },
            True,
        ),
        (
            "MusterSchedulerFilesOld",
            {
                "muster_extender_caller_certificate_expiry_timestamp_seconds": "0x1500",
                'muster_certs_expiry_timestamp_seconds{certificate="client"}': "9900000x1500",
            },
            False,
        ),
        (
            "MusterGangsIncomplete",
            {'muster_gpu_seconds_incomplete_total{queue="q"}': "0+60x90"},
            True,
        ),
        (
            "MusterGangsIncomplete",
            {'muster_gpu_seconds_incomplete_total{queue="q"}': "900x90"},
            False,
        ),
        (
            "MusterQueueStarves",
            {'muster_queue_pending{queue="q"}': "3x800"},
            True,
        ),
        (
            "MusterQueueStarves",
            {
                'muster_queue_pending{queue="q"}': "3x800",
                'muster_admission_wait_seconds_count{queue="q"}': "0+1x800",
            },
            False,
        ),
        (
            "MusterRedisNoPrimary",
            {'muster_redis_has_primary{pod="a"}': "0x20", 'muster_redis_leader{pod="a"}': "1x20"},
            True,
        ),
        (
            "MusterRedisNoPrimary",
            {
                'muster_redis_has_primary{pod="a"}': "1x20",
                'muster_redis_leader{pod="a"}': "1x20",
                'muster_redis_has_primary{pod="b"}': "0x20",
                'muster_redis_leader{pod="b"}': "0x20",
            },
            False,
        ),
        (
            "MusterRedisMemoryFull",
            {
                'muster_redis_memory_bytes{server="a"}': "90x20",
                'muster_redis_memory_limit_bytes{server="a"}': "100x20",
            },
            True,
        ),
        (
            "MusterRedisMemoryFull",
            {
                'muster_redis_memory_bytes{server="a"}': "90x20",
                'muster_redis_memory_limit_bytes{server="a"}': "0x20",
            },
            False,
        ),
        ("MusterRedisLags", {'muster_redis_lag_bytes{server="a"}': "20000000x20"}, True),
        ("MusterRedisLags", {'muster_redis_lag_bytes{server="a"}': "1000x20"}, False),
        ("MusterRedisNoLeader", {'muster_redis_leader{pod="a"}': "0x20"}, True),
    ],
)
def test_an_alert_fires_when_it_should(
    tmp_path: Path, alert: str, series: dict[str, str], *, fires: bool
) -> None:
    write_rules(tmp_path / "rules.yaml", rules())
    count = max(int(each.rpartition("x")[2]) for each in series.values())
    query = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}}) > bool 0 or vector(0)'
    expected = {"labels": "{}", "value": 1.0 if fires else 0.0}
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": each} for name, each in series.items()],
        "promql_expr_test": [
            {"expr": query, "eval_time": f"{count - 1}m", "exp_samples": [expected]}
        ],
    }
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [test]}))
    promtool("test", "rules", str(path))
