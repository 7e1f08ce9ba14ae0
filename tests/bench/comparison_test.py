"""What bench/compare_torch computes; needs no PyTorch."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))

import comparison
from comparison import thimble_setting, torch_setting


class Settings(unittest.TestCase):
    def test_torch_words(self):
        setting = torch_setting("nhwc", 50, compiled=True)
        self.assertEqual(setting.words, ("--form", "nhwc", "--batch", "50", "--compile"))
        self.assertEqual(setting.name, "torch nhwc compiled batch 50")

    def test_torch_precision(self):
        setting = torch_setting("nhwc", 50, precision="bf16-autocast")
        self.assertEqual(
            setting.words, ("--form", "nhwc", "--batch", "50", "--precision", "bf16-autocast")
        )
        self.assertEqual(setting.name, "torch nhwc eager batch 50 bf16-autocast")

    def test_compiled_settings_keep_the_fastest_precision(self):
        speeds = {torch_setting("nhwc", 50, precision="bf16"): 2.0, torch_setting("nhwc", 50): 1.0}
        (compiled,) = comparison.compile_candidates(speeds, ["nhwc"])
        self.assertEqual(compiled.name, "torch nhwc compiled batch 50 bf16")

    def test_thimble_takes_the_batch_unless_its_options_name_one(self):
        self.assertEqual(thimble_setting("", 100).words, ("--batch", "100"))
        self.assertEqual(thimble_setting("--batch 10", 100).words, ("--batch", "10"))
        self.assertEqual(
            thimble_setting("--scratch 64KiB", 100).words,
            ("--batch", "100", "--scratch", "64KiB"),
        )

    def test_batches(self):
        self.assertEqual(comparison.parse_batches("50,100"), [50, 100])
        for wrong in ("", "50,", "ten", "0", "-5,10"):
            with self.assertRaisesRegex(ValueError, "expected batch sizes"):
                comparison.parse_batches(wrong)


class Choice(unittest.TestCase):
    def test_fastest_first_without_what_failed(self):
        slow, fast, failed = (torch_setting("nchw", batch) for batch in (50, 100, 200))
        self.assertEqual(
            comparison.best_first({slow: 1.0, failed: None, fast: 2.0}), [fast, slow]
        )
        self.assertEqual(comparison.best_first({failed: None}), [])

    def test_compile_is_tried_at_the_fastest_batch_of_each_form(self):
        speeds = {
            torch_setting("nchw", 50): 3.0,
            torch_setting("nchw", 100): 2.0,
            torch_setting("nhwc", 50): 1.0,
            torch_setting("nhwc", 100): 4.0,
        }
        self.assertEqual(
            comparison.compile_candidates(speeds, ["nchw", "nhwc"]),
            [torch_setting("nchw", 50, True), torch_setting("nhwc", 100, True)],
        )

    def test_compile_is_not_tried_where_nothing_worked(self):
        speeds = {torch_setting("nchw", 50): None, torch_setting("nhwc", 50): 1.0}
        self.assertEqual(
            comparison.compile_candidates(speeds, ["nchw", "nhwc"]),
            [torch_setting("nhwc", 50, True)],
        )


class Comparison(unittest.TestCase):
    def test_ratio_is_to_the_fastest_torch_by_median(self):
        thimble = thimble_setting("", 100)
        slow, fast = torch_setting("nchw", 50), torch_setting("nhwc", 50)
        rows = comparison.compare(
            {thimble: [30.0, 20.0, 40.0], slow: [1.0, 90.0, 2.0], fast: [9.0, 10.0, 11.0]}
        )
        self.assertEqual([row["setting"] for row in rows], [thimble, slow, fast])
        self.assertEqual([row["ratio"] for row in rows], [3.0, 0.2, 1.0])
        self.assertEqual(rows[0]["summary"], comparison.Summary(30.0, 20.0, 40.0))

    def test_without_torch_there_is_no_ratio(self):
        rows = comparison.compare({thimble_setting("", 100): [1.0]})
        self.assertIsNone(rows[0]["ratio"])
        self.assertIn("1.0..1.0", comparison.format_comparison(rows))

    def test_tables_align(self):
        text = comparison.format_table(["name", "n"], [["a", "10"], ["longer", "9"]])
        self.assertEqual(text, "name     n\na       10\nlonger   9\n")

    def test_what_failed_says_why(self):
        setting = torch_setting("nchw", 50, compiled=True)
        text = comparison.format_search({setting: None}, {setting: "no compiler"})
        self.assertIn("no compiler", text)


if __name__ == "__main__":
    unittest.main()
