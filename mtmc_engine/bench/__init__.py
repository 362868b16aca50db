"""Folders of tasks, walked without anybody watching: one line a task, totals by family."""
