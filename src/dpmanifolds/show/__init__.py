"""A release for people: one HTML page that says what it is and what it promises, and files for programs."""

from dpmanifolds.show.difference import difference_html
from dpmanifolds.show.regression import regression_html
from dpmanifolds.show.report import load_release, report_html, save_release, write_report

__all__ = ["difference_html", "load_release", "regression_html", "report_html", "save_release", "write_report"]
