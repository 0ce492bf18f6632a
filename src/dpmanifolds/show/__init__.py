"""A release for people: one HTML page that says what it is and what it promises, and files for programs."""

from dpmanifolds.show.files import load_release, save_release
from dpmanifolds.show.report import report_html, write_report

__all__ = ["load_release", "report_html", "save_release", "write_report"]
