"""Clusters, devices, workloads and plans: what is read, made, shown and refused."""

import re
import tempfile
import unittest
from pathlib import Path

import stepcast
import support


class Records(unittest.TestCase):
    def test_shipped_clusters_are_read_by_name_and_by_path(self):
        self.assertIn("gce-t4", stepcast.cluster_names())
        self.assertNotIn("gpus", stepcast.cluster_names())
        by_name = stepcast.read_cluster("gce-t4")
        path = stepcast.data_folder() / "machines" / "gce-t4.yaml"
        self.assertEqual(by_name, stepcast.read_cluster(path))
        self.assertEqual(by_name, stepcast.parse_cluster(by_name.to_yaml()))
        self.assertEqual((by_name.device, by_name.nodes, by_name.devices_per_node), ("t4", 4, 4))
        self.assertFalse(by_name.calibrated)
        self.assertEqual(by_name.parameters, [])

    def test_devices(self):
        t4 = stepcast.find_device("Tesla T4") or stepcast.find_device("T4")
        self.assertEqual(t4.name, "t4")
        self.assertAlmostEqual(t4.fp32_flop_per_s, 8.1e12, delta=0.2e12)
        self.assertIsNone(stepcast.find_device("no such"))
        self.assertIn("t4", [device.name for device in stepcast.read_devices()])

    def test_a_cluster_without_a_file(self):
        cluster = stepcast.cluster("t4", nodes=2, devices_per_node=4, bandwidth_bytes_per_s=1.25e9,
                                   rtt_s=1e-4, loss_rate=0.01)
        self.assertEqual(cluster.bandwidth_bytes_per_s, 1.25e9)
        self.assertEqual(cluster.rtt_s, 1e-4)
        self.assertEqual(cluster.loss_rate, 0.01)
        with self.assertRaises(stepcast.InputError) as caught:
            stepcast.cluster("t4", nodes=0)
        self.assertEqual(caught.exception.key, "nodes")

    def test_workloads(self):
        resnet = stepcast.workload("resnet50")
        self.assertEqual(resnet.gradient_bytes, 4 * resnet.trainable_parameters)
        self.assertGreater(resnet.layers, 50)
        self.assertEqual(stepcast.parse_workload(resnet.to_yaml()), resnet)
        own = stepcast.workload("mine", parameters=25e6)
        self.assertEqual((own.parameters, own.gradient_bytes, own.layers), (25_000_000, 1e8, 0))
        self.assertEqual(stepcast.workload("mine", gradient_bytes=5000).gradient_bytes, 5000)
        with self.assertRaises(stepcast.InputError) as caught:
            stepcast.workload("resnet5")
        self.assertEqual((caught.exception.key, caught.exception.value), ("workload", "resnet5"))
        self.assertIn("stepcast.workload_names()", caught.exception.allowed)
        self.assertIn("did you mean resnet50?", caught.exception.problem)
        with self.assertRaises(stepcast.InputError) as caught:
            stepcast.workload("llama3_1_8b@4096")
        self.assertIn("did you mean llama3.1_8b@4096?", caught.exception.problem)
        with self.assertRaises(stepcast.InputError) as caught:
            stepcast.read_cluster("gce_t4")
        self.assertIn("did you mean gce-t4?", caught.exception.problem)
        self.assertEqual(stepcast.workload("resnet50@64").name, "resnet50@64")
        decoder = stepcast.workload("llama:heads=32:layers=32:hidden=4096")
        self.assertEqual(decoder.name, "llama:layers=32:hidden=4096:heads=32")
        self.assertEqual(decoder.parameters, stepcast.workload("llama_7b").parameters)
        self.assertEqual(stepcast.parse_workload(decoder.to_yaml()), decoder)
        with self.assertRaises(stepcast.InputError) as caught:
            stepcast.workload("resnet50@6")
        self.assertIn("32 to 4096 pixels", caught.exception.allowed)

    def test_workloads_say_how_they_are_trained(self):
        resnet = stepcast.workload("resnet50")
        self.assertEqual((resnet.precision, resnet.optimizer), ("fp32", "momentum"))
        mixed = stepcast.workload("resnet50", precision="bf16", optimizer="adam")
        self.assertEqual((mixed.precision, mixed.optimizer), ("bf16", "adam"))
        self.assertEqual(stepcast.parse_workload(mixed.to_yaml()), mixed)
        self.assertNotEqual(mixed, resnet)
        self.assertEqual(mixed.replace(precision="fp32", optimizer="momentum"), resnet)
        self.assertEqual(resnet.replace(precision="bf16").replace(optimizer="adam"), mixed)
        self.assertEqual(mixed.replace(), mixed)
        own = stepcast.workload("mine", parameters=1000, optimizer="sgd")
        self.assertEqual((own.parameters, own.optimizer), (1000, "sgd"))
        opt = stepcast.workload("opt_125m")
        self.assertEqual((opt.attention, stepcast.workload("llama_7b").attention),
                         ("plain", "fused"))
        fused = stepcast.workload("opt_125m", attention="fused")
        self.assertEqual(fused.attention, "fused")
        self.assertEqual(opt.replace(attention="fused"), fused)
        self.assertEqual(stepcast.parse_workload(fused.to_yaml()), fused)
        self.assertEqual(opt.recompute, "none")
        recomputed = stepcast.workload("opt_125m", recompute="full")
        self.assertEqual(recomputed.recompute, "full")
        self.assertEqual(opt.replace(recompute="full"), recomputed)
        self.assertNotEqual(opt, recomputed)
        self.assertEqual(stepcast.parse_workload(recomputed.to_yaml()), recomputed)
        self.assertEqual(opt.replace(recompute="selective").recompute, "selective")
        runs = [stepcast.Run("resnet50", "t4", stepcast.Plan(workers=1, local_batch=b), 0.01 * b)
                for b in (8, 16)]
        fitted = stepcast.calibrate(stepcast.read_cluster("gce-t4"), runs,
                                    workloads={"resnet50": mixed}).cluster
        self.assertEqual(resnet.as_fitted(fitted), mixed)
        like_it = opt.as_fitted(fitted)
        self.assertEqual(like_it, opt.replace(precision="bf16", optimizer="adam"))
        taken = "taken as bf16, adam, as all its runs were"
        plan = stepcast.Plan(workers=1, local_batch=8)

        def flags(workload):
            return " ".join(stepcast.Predictor(fitted, workload).predict(plan).flags)
        self.assertIn(taken, flags(like_it))
        self.assertNotIn(taken, flags(like_it.replace(precision="bf16", optimizer="adam")))
        self.assertNotIn(taken, flags(mixed))
        self.assertEqual(opt.as_fitted(stepcast.read_cluster("gce-t4")), opt)
        self.assertEqual(resnet.as_fitted(stepcast.read_cluster("gce-t4")), resnet)
        self.assertEqual(stepcast.Predictor(fitted, mixed).predict(plan).compute_source,
                         "calibration")
        self.assertEqual(stepcast.Predictor(fitted, resnet).predict(plan).compute_source,
                         "calibration of it trained otherwise")
        for key, wrong, allowed in [("precision", "fp64", "fp32, tf32, fp16, bf16, fp8"),
                                    ("attention", "flash", "plain, fused"),
                                    ("recompute", "half", "none, selective, full"),
                                    ("optimizer", "lion", "sgd, momentum, adam")]:
            with self.assertRaises(stepcast.InputError) as caught:
                resnet.replace(**{key: wrong})
            self.assertEqual((caught.exception.key, caught.exception.value), (key, wrong))
            self.assertEqual(caught.exception.allowed, allowed)

    def test_runs(self):
        runs = stepcast.read_runs(str(support.SOURCE / "data/measurements/ufrgs-tupi-fit.csv"))
        self.assertEqual(len(runs), 3)
        self.assertEqual(runs[0].workload, "resnet50")
        self.assertGreater(runs[0].step_time_s, 0)

    def test_an_error_names_file_line_key_and_value(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "c.yaml"
            path.write_text("name: c\ndevice: t4\nnodes: none\ndevices_per_node: 1\n")
            with self.assertRaises(stepcast.InputError) as caught:
                stepcast.read_cluster(path)
        error = caught.exception
        self.assertEqual((error.file, error.line, error.key, error.value),
                         (str(path), 3, "nodes", "none"))
        self.assertTrue(error.problem)
        self.assertTrue(error.allowed)
        self.assertIsInstance(error, ValueError)
        self.assertIn("c.yaml:3: nodes", str(error))

    def test_the_table_of_a_calibration_has_its_numbers(self):
        cluster = stepcast.parse_cluster(
            "name: c\ndevice: t4\nnodes: 2\ndevices_per_node: 1\n"
            "calibration:\n  residual_log_sd: 0.05\n  parameters:\n"
            "    - {scope: cluster, name: link_bandwidth, unit: Gbit/s, value: 8.5, low: 6.25, "
            "high: 11.5, log_sd: 0.1, prior_value: 1, prior_log_sd: 1, decided_by: data}\n"
            "    - {scope: cluster, name: overlap_share, value: 0.5, log_sd: 0.1, "
            "prior_value: 1, prior_log_sd: 1, decided_by: stated}\n")
        rows = [re.findall(r"<td>(.*?)</td>", row)
                for row in re.findall(r"<tr>(.*?)</tr>", cluster._repr_html_())]
        self.assertEqual([row for row in rows if row],
                         [["cluster", "link_bandwidth", "8.5 Gbit/s", "6.25 - 11.5", "data"],
                          ["cluster", "overlap_share", "0.5", "", "stated"]])

    def test_reprs_are_text_and_html(self):
        cluster = stepcast.read_cluster("gce-t4")
        self.assertEqual(repr(cluster), "<Cluster gce-t4: 4 x 4 t4, not calibrated>")
        self.assertIn("<b>", cluster._repr_html_())
        self.assertIn("resnet50", repr(stepcast.workload("resnet50")))
        self.assertEqual(repr(stepcast.find_device("t4")), "<Device t4>")


class Plans(unittest.TestCase):
    def test_layouts(self):
        for keywords, placement in [
            ({}, [1]),
            ({"workers": 1}, [1]),
            ({"workers": 10, "devices_per_node": 4}, [4, 4, 2]),
            ({"workers": 10, "nodes": 3}, [4, 3, 3]),
            ({"workers": 10, "nodes": 3, "devices_per_node": 4}, [4, 4, 2]),
            ({"workers": 8, "nodes": 3, "devices_per_node": 6}, [6, 1, 1]),
            ({"nodes": 2, "devices_per_node": 3}, [3, 3]),
            ({"placement": "4-4-2"}, [4, 4, 2]),
            ({"placement": (2, 1)}, [2, 1]),
        ]:
            with self.subTest(keywords):
                plan = stepcast.Plan(**keywords)
                self.assertEqual(plan.placement, placement)
                self.assertEqual(plan.workers, sum(placement))
                self.assertEqual(plan.nodes, len(placement))
                self.assertEqual(plan.devices_per_node, max(placement))

    def test_refusals_name_the_keyword(self):
        for keywords, key in [
            ({"workers": 8}, "workers"),
            ({"nodes": 2}, "nodes"),
            ({"workers": 0, "nodes": 1}, "workers"),
            ({"workers": 2, "nodes": 3}, "nodes"),
            ({"workers": 9, "nodes": 2, "devices_per_node": 4}, "devices_per_node"),
            ({"workers": 4, "nodes": 2, "placement": [2, 2]}, "placement"),
            ({"local_batch": 0}, "local_batch"),
            ({"local_batch": 1.5}, "local_batch"),
            ({"local_batch": 10**12}, "local_batch"),
            ({"accumulation_steps": 0}, "accumulation_steps"),
            ({"bandwidth_bytes_per_s": -1.0}, "bandwidth_bytes_per_s"),
            ({"bandwidth_bytes_per_s": "fast"}, "bandwidth_bytes_per_s"),
            ({"rtt_s": -1}, "rtt_s"),
            ({"loss_rate": 1.0}, "loss_rate"),
            ({"strategy": "rings"}, "strategy"),
            ({"strategy": "ps-sync"}, "servers"),
            ({"strategy": "ring", "servers": 2}, "servers"),
            ({"hosts": ["a", "b"]}, "hosts"),
            ({"bucket_bytes": 0}, "bucket_bytes"),
            ({"staleness_bound": 2}, "staleness_bound"),
            ({"colocated_servers": 1}, "colocated_servers"),
            ({"wokers": 2}, "Plan"),
        ]:
            with self.subTest(keywords), self.assertRaises(stepcast.InputError) as caught:
                stepcast.Plan(**keywords)
            self.assertEqual(caught.exception.key, key)

    def test_numbers_that_no_c_int_holds_are_told_as_they_are(self):
        for value in (-2**31 - 1, 2**31, -2**40, 2**40, -2**64, 2**64):
            with self.subTest(value), self.assertRaises(stepcast.InputError) as caught:
                stepcast.Plan(local_batch=value)
            error = caught.exception
            self.assertEqual((error.key, error.value, error.problem, error.allowed),
                             ("local_batch", str(value), "is out of range",
                              f"{-2**31} to {2**31 - 1}"))

    def test_what_fields_say_is_what_plans_take(self):
        """The ends of each range, what lies behind them, and nought."""
        def takes(name, value):
            try:
                stepcast.Plan().replace(**{name: value})
            except stepcast.InputError as error:
                return error.problem != "is out of range"
            return True

        checked = 0
        for name, field in stepcast.plan_fields().items():
            if field.unit is None or field.least is None:
                continue
            checked += 1
            number = int if isinstance(getattr(stepcast.Plan(), name), int) else float
            with self.subTest(name):
                self.assertTrue(takes(name, number(field.least)))
                if name not in ("backup_workers", "slow_nodes"):  # which a plan has no more of
                    self.assertEqual(takes(name, number(field.most)), not field.below_most)
                self.assertFalse(takes(name, number(2 * field.most)))
                self.assertEqual(takes(name, number(0)), field.or_nought or field.least == 0)
        self.assertGreater(checked, 15)

    def test_fields_say_what_they_may_be(self):
        fields = stepcast.plan_fields()
        plan = stepcast.Plan()
        for name, field in fields.items():
            self.assertTrue(hasattr(plan, name), name)
            self.assertEqual(field.least is None, field.most is None, name)
            if field.unit is not None:
                self.assertLess(field.least, field.most, name)
        rtt = fields["rtt_s"]
        self.assertEqual((rtt.unit, rtt.or_nought, rtt.below_most), ("s", True, False))
        self.assertAlmostEqual(rtt.most, 1e3)
        self.assertAlmostEqual(rtt.least / 1e-12, 1)
        self.assertEqual(fields["bandwidth_bytes_per_s"].unit, "bytes/s")
        self.assertAlmostEqual(fields["bandwidth_bytes_per_s"].most / 1.25e14, 1)
        self.assertEqual(fields["input_samples_per_s"].unit, "samples/s")
        self.assertEqual(fields["bucket_bytes"].unit, "bytes")
        batch = fields["local_batch"]
        self.assertEqual((batch.unit, batch.least, batch.most), ("", 1, 10**8))
        self.assertEqual((fields["loss_rate"].most, fields["loss_rate"].below_most), (1, True))
        self.assertEqual((fields["overlap"].unit, fields["overlap"].least), (None, None))
        self.assertEqual(fields["overlap"].words, ("buckets", "none", "p-norm"))
        self.assertEqual((fields["placement"].unit, fields["placement"].least), (None, 1))
        self.assertEqual(fields["hosts"], stepcast.PlanField(
            "names of the nodes, in placement order", None, None, None, False, False, ()))
        # Its ends are allowed, and what is beyond them is not.
        for name in ("rtt_s", "local_batch", "bandwidth_bytes_per_s", "bucket_bytes"):
            most = fields[name].most
            kind = int if fields[name].unit == "" else float
            self.assertEqual(getattr(stepcast.Plan(**{name: kind(most)}), name), most)
            with self.assertRaises(stepcast.InputError):
                stepcast.Plan(**{name: kind(most * 1.1)})

    def test_replace_changes_what_it_names(self):
        plan = stepcast.Plan(workers=8, devices_per_node=4, strategy="ring", rtt_s=1e-3)
        other = plan.replace(workers=2, nodes=2, local_batch=7)
        self.assertEqual((other.placement, other.local_batch), ([1, 1], 7))
        self.assertEqual((other.strategy, other.rtt_s), ("ring", 1e-3))
        self.assertEqual(plan.placement, [4, 4])
        self.assertEqual(stepcast.Plan(**plan.to_dict()), plan)
        self.assertNotEqual(plan, other)
        self.assertEqual(eval(repr(plan), {"Plan": stepcast.Plan}), plan)

    def test_what_is_equal_is_one_key(self):
        def made():
            return [stepcast.Plan(workers=8, devices_per_node=4, local_batch=64, rtt_s=1e-3),
                    stepcast.read_cluster("gce-t4"), stepcast.workload("resnet50"),
                    stepcast.workload("resnet50", precision="bf16")]

        known = {key: place for place, key in enumerate(made())}
        self.assertEqual([known[key] for key in made()], [0, 1, 2, 3])
        self.assertNotIn(made()[0].replace(local_batch=65), known)

    def test_replace_takes_lists_anew_and_none_as_not_given(self):
        plan = stepcast.Plan(nodes=2, devices_per_node=1, hosts=["a", "b"], local_batch=7)
        self.assertEqual(plan.replace(hosts=["c", "d"]).hosts, ["c", "d"])
        self.assertEqual(plan.replace(workers=3, nodes=3).hosts, [])
        self.assertEqual(plan.replace(local_batch=None).local_batch, 1)
        self.assertEqual(stepcast.Plan(local_batch=None, rtt_s=None), stepcast.Plan())

    def test_every_keyword_is_a_property(self):
        plan = stepcast.Plan(
            workers=4, nodes=2, strategy="ps-sync", servers=2, local_batch=3, accumulation_steps=2,
            bandwidth_bytes_per_s=1e9, rtt_s=1e-3, loss_rate=0.25, congestion_control="bbr",
            loss_burst_s=2e-3, server_bandwidth_bytes_per_s=2e9, bucket_bytes=1e6, overlap="none",
            backup_workers=1, sharding="even", multicast=True, in_network_aggregation=True,
            hosts=["a", "b"])
        for name, value in plan.to_dict().items():
            self.assertEqual(getattr(plan, name), value)
        self.assertEqual(len(plan.to_dict()), 18)
        beside = stepcast.Plan(workers=4, nodes=2, strategy="ps-sync", servers=2,
                               colocated_servers=True, pipelined_servers=True)
        self.assertTrue(beside.colocated_servers and beside.pipelined_servers)
        self.assertEqual(stepcast.Plan(strategy="ps-async", servers=1,
                                       staleness_bound=3).staleness_bound, 3)


if __name__ == "__main__":
    support.main()
