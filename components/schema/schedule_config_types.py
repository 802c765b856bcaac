"""Types of schedules in declarations, and of their accounts in stack files."""

from typing import Literal, Required

from vertex_api.scalar_types import Boolean, String

from . import field_types
from .closed_typed_dict_base import ClosedTypedDict


class Schedule(ClosedTypedDict, total=False):
    """When jobs with `lifecycle.run: scheduled` run: one `job`, or several `jobs`, one after another."""

    cron: Required[field_types.Cron]
    timeZone: field_types.TimeZone
    job: String
    jobs: list[String]
    paused: Boolean
    overlap: Literal["skip", "allow"]


class ScheduleAccount(ClosedTypedDict, total=False):
    """A service account for schedules: an `account` to create, or an `existing` one."""

    account: field_types.AccountId
    existing: field_types.AccountEmail


class CloudScheduling(ClosedTypedDict, total=False):
    """What all schedules share: the accounts of Cloud Scheduler and of workflows, and the region of Cloud Scheduler."""

    scheduler: ScheduleAccount
    workflow: ScheduleAccount
    region: String
    protect: Boolean
