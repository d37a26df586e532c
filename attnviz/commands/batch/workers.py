"""Jobs of a batch shared out. What dies at a job takes it along, and no other."""

from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import Literal

from attnviz import store
from attnviz.bounded import is_file
from attnviz.commands.batch.jobs import Job
from attnviz.commands.batch.paths import find_needed_jobs
from attnviz.commands.batch.run_job import describe_file, fingerprint, read_job, run_job
from attnviz.errors import AttnvizError, InvalidOption, OutputError
from attnviz.running.local_executor import WorkerDied
from attnviz.store.manifest import Entry, File

How = Literal["made", "unchanged", "failed"]


@dataclass(frozen=True, eq=False)
class Done:
    """One job, and how it ended."""

    entry: Entry
    how: How
    disk_failed: bool = False  # that is why it failed


def run_jobs(
    jobs: Sequence[Job], folder: Path, earlier: Mapping[str, Entry], executor: Executor, fail_fast: bool
) -> Generator[Done]:
    """Yield each job as it is done; those that read what others make come after these.

    `earlier` are entries of a run before: what did not change since is not made again. Raises InvalidOption for jobs
    that read each other's files.
    """
    needed = find_needed_jobs(jobs, folder)
    failed: set[str] = set()
    order = TopologicalSorter(needed)
    try:
        order.prepare()
    except CycleError as error:
        names = ", ".join(sorted({*error.args[1]}))
        raise InvalidOption(f"the jobs {names} read each other's files", hint="Let one of them read others.") from error
    while order.is_active():
        ready = {*order.get_ready()}
        lacking = [job for job in jobs if job.name in ready and needed[job.name] & failed]
        submitted = {
            executor.submit(run_one, job, folder, earlier.get(job.name)): job
            for job in jobs
            if job.name in ready and not needed[job.name] & failed
        }
        made = (_outcome(submitted.pop(future), future) for future in as_completed(submitted))
        others = ((job, min(needed[job.name] & failed)) for job in lacking)
        lost = (_describe_failure(job, f"the job {other!r}, whose files it reads, failed") for job, other in others)
        for done in chain(lost, made):
            yield done
            if done.how == "failed":
                failed.add(done.entry.name)
                if fail_fast:
                    return
        order.done(*ready)


def _outcome(job: Job, future: Future[Done]) -> Done:
    try:
        return future.result()
    except WorkerDied as error:
        return _describe_failure(job, f"the process that made it ended {error.how}")


def run_one(job: Job, folder: Path, earlier: Entry | None) -> Done:
    """Make one job, unless it would come out as it is. Whatever goes wrong is told in what it gives."""
    try:
        store.refuse_links(folder, job.name)
        if earlier is not None and not earlier.error:  # it may come out as it is there
            inputs = read_job(job, folder / job.name / "new")  # within its own folder it may find a model it wrote
            is_same = earlier.fingerprint == fingerprint(job, inputs.sha256())
            if is_same and all(_is_as_made(file, folder) for file in earlier.files):
                return Done(earlier, "unchanged")
        with store.replacing(folder) as new:
            entry = run_job(job, new.path)
            new.names.update(file.path for file in entry.files)
            if earlier is not None:  # of other settings: its files are not to be taken for this job's
                new.discard(file.path for file in earlier.files if _is_as_made(file, folder))
        return Done(entry, "made")
    except AttnvizError as error:
        return _describe_failure(job, str(error), isinstance(error, OutputError))
    except MemoryError:
        return _describe_failure(job, "not enough memory. Fewer --max-tokens, --layers or --heads take less")
    except Exception as error:
        return _describe_failure(job, f"this is a bug of attnviz ({type(error).__name__}: {error}); please report it")


def _is_as_made(file: File, folder: Path) -> bool:
    """Return whether a file is there as it was made: one that somebody put in its place is theirs."""
    return is_file(folder / file.path) and describe_file(folder / file.path, folder) == file


def _describe_failure(job: Job, error: str, disk_failed: bool = False) -> Done:
    """Describe a failed job, with its settings: `diff --again` tries the same."""
    entry = Entry(job.name, job.command, job.settings, "", {}, (), (), (), error=error)
    return Done(entry, "failed", disk_failed)
