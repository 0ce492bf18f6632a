"""The planner page: one HTML file that plans a private mean in the browser, without any request."""

from dpmanifolds.page.planner import plan_page, write_plan_page

__all__ = ["plan_page", "write_plan_page"]
