"""What goes wrong between workers."""

from __future__ import annotations


class LostWorker(ConnectionError):
    """A worker of the team is gone, or does not answer: the fit cannot go on with this team."""
