"""History, warnings, checkpoints and stopping of a run."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.common.errors import Interrupted, RunFailed
from propos.data import Source
from propos.distributed import any_process, gather_on_first
from propos.evaluation import scores
from propos.runs import RunFolder
from propos.training.checkpoint import CheckpointWriter
from propos.training.e_step import Assignment
from propos.training.health import Labels, Record, measure, warnings
from propos.training.learner import Learner
from propos.training.model import weights_of
from propos.training.optimiser import rate_at
from propos.training.preview import Preview
from propos.training.progress import Progress
from propos.training.stages import clusters_needed
from propos.training.state import State
from propos.training.tensorboard import TensorBoardWriter

EARLY_EPOCHS = 5  # an untrained network's embeddings always lie close together
LOWER_RATE = "start a new run at a lower rate (--set train.lr=…)"
NAN_CHECK_EVERY = 50  # steps; reading a loss makes a GPU wait


class Recorder:
    """Records a run: its state, history and checkpoints; without a run folder nothing is written.

    A checkpoint is saved when `train.checkpoint_minutes` have passed, at the end of a stage, before the number of
    clusters is chosen, and at a stop. Of several processes the first has the folder. All of them stop and save at the
    same step.
    """

    def __init__(
        self,
        learner: Learner,
        state: State,
        run: RunFolder | None,
        progress: Progress,
        stop: Callable[[], bool],
    ) -> None:
        self.learner, self.state, self.run, self.progress, self.stop = learner, state, run, progress, stop
        self.saves = any_process(run is not None)[0]
        self.checkpoints = CheckpointWriter(run)
        self.last_save = time.monotonic()
        self.clock = time.perf_counter()
        self.preview = Preview(run)
        self.board: TensorBoardWriter | None = None
        if learner.config.log.tensorboard and self.saves:
            # If the run resumes within an epoch, its E-step is not shown again.
            self.board = TensorBoardWriter(learner.config, run, state.epoch + state.epoch_open)

    def show(self, assignment: Assignment, source: Source, last: bool = False) -> None:
        """Draw the result of an E-step for those who watch the run, and for TensorBoard if it is enabled."""
        if not last:
            self.preview.show(assignment, source)
        if self.board is not None:
            self.board.show(assignment, source, self.state.epoch, last)

    def open_epoch(self, assignment: Assignment | None, labels: Labels) -> None:
        """Record the E-step at the start of an epoch; None if there was none."""
        state = self.state
        state.measures = {}
        if assignment is not None:
            state.partition = assignment.partition()
            state.measures = measure(assignment, labels)
            self._keep_embeddings(state.epoch - 1, assignment)
            if self.learner.config.estep.embeddings == "streamed" and state.streamed is None:
                state.streamed = assignment.embeddings.clone()
        state.losses, state.counts = {}, {}
        state.spend("estep", self._lap())
        self._stop_if(any_process(self.stop())[0])

    def after_step(self, losses: dict[str, Float[Tensor, ""]]) -> None:
        """Record a step; stop on NaN or on request; save a checkpoint when it is due."""
        state = self.state
        state.record(losses, self.learner.schedule.steps)
        state.step += 1
        state.spend("mstep", self._lap())
        if self.learner.device.type == "cpu" or state.step % NAN_CHECK_EVERY == 0:
            self._stop_on_nan()
        self.checkpoints.check()
        self.progress.step(state.epoch, state.step)
        asked, due = any_process(self.stop(), self._late())
        if due and not asked:
            self._save()
        self._stop_if(asked)

    def close_epoch(self) -> None:
        """Write an epoch's line and, when it is due, a checkpoint."""
        self._stop_on_nan()
        record = self._record()
        self.state.next_epoch()
        self._write(record)
        if record["epoch"] in self.learner.config.keep_epochs and self.run is not None:
            self.run.write_weights(
                weights_of(self.learner.method), f"snapshots/epoch-{record['epoch']:04d}.safetensors"
            )
        if any_process(self._late())[0] or self._stage_ends() or self._clusters_next():
            self._save()

    def stop_while_choosing(self) -> None:
        """Stop on request while the number of clusters is chosen; the checkpoint before the choice has all epochs."""
        if any_process(self.stop())[0]:
            self.checkpoints.wait()
            raise Interrupted

    def _late(self) -> bool:
        """Return whether it is time for a checkpoint; only the process that writes it decides."""
        minutes = self.learner.config.train.checkpoint_minutes
        return self.run is not None and time.monotonic() - self.last_save > 60 * minutes

    def _stage_ends(self) -> bool:
        return self.state.epoch == self.learner.epochs.stop

    def _clusters_next(self) -> bool:
        """Return whether the number of clusters is chosen next."""
        config = self.learner.config
        return config.clusters is None and self.state.epoch == clusters_needed(config)

    def close_run(self, assignment: Assignment, labels: Labels, by_head: Int[Tensor, " N"] | None) -> None:
        """Write the line of the final E-step, once the last checkpoint is written."""
        self.checkpoints.wait()
        measures = measure(assignment, labels)
        if by_head is not None and labels is not None:
            part = (assignment.labels >= 0).cpu().numpy()
            found = scores(labels[part], by_head.cpu().numpy()[part])
            measures |= {f"head_{name}": value for name, value in found.items()}
        record: Record = {
            "epoch": self.state.epoch,
            "stage": self.learner.stage.name,
            "losses": {},
            "rates": {},
            "measures": measures,
        }
        record["seconds"] = {"estep": self._lap()}
        self._keep_embeddings(self.state.epoch - 1, assignment)
        self._write(record)

    def close(self) -> None:
        """Close the open files, however the run ended."""
        self.preview.remove()
        self.checkpoints.close()
        if self.board is not None:
            self.board.close()

    def _keep_embeddings(self, epoch: int, assignment: Assignment) -> None:
        """Write the embeddings after a kept epoch: the report shows them without networks."""
        if not self.saves or epoch not in self.learner.config.keep_epochs:
            return
        whole = gather_on_first(assignment.embeddings.cpu(), self.learner.schedule.images)
        if self.run is not None and whole is not None:
            self.run.write_array(f"snapshots/epoch-{epoch:04d}.npy", whole.numpy())

    def _write(self, record: Record) -> None:
        early = max(self.learner.schedule.settings.warmup, EARLY_EPOCHS)
        past_warmup = self.learner.stage_epoch(record["epoch"]) >= early
        images = self.learner.schedule.images
        new = warnings(record["measures"], self.state.history, images, past_warmup)
        self.state.history.append({**record, "warnings": new} if new else record)
        for warning in new:
            self.progress.warn(f"{warning['code']}: {warning['text']}")
        if self.run is not None:
            self.run.write_history(self.state.history)
        if self.board is not None:
            self.board.record(record)
        self.progress.epoch(record)

    def _record(self) -> Record:
        state, learner = self.state, self.learner
        assert state.measures is not None
        means = state.mean_losses()
        last_step = (learner.stage_epoch(state.epoch) + 1) * learner.schedule.steps - 1
        rates = {
            f"{module.rpartition('.')[2]}_lr": rate_at(rate, learner.schedule, last_step)
            for module, rate in learner.stage.rates.items()
        }
        return {
            "epoch": state.epoch,
            "stage": learner.stage.name,
            "losses": {"total": sum(means.values()), **means},
            "rates": {
                "lr": learner.schedule.learning_rate(last_step),
                **rates,
                "momentum": learner.schedule.momentum(last_step),
            },
            "measures": state.measures,
            "seconds": state.seconds,
        }

    def _stop_on_nan(self) -> None:
        bad = self.state.first_bad_step()
        if bad is not None:
            raise RunFailed(f"the loss became NaN at step {bad} of epoch {self.state.epoch}: {LOWER_RATE}", "nan")

    def _stop_if(self, asked: bool) -> None:
        if asked:
            self._save()
            self.checkpoints.wait()
            raise Interrupted

    def _save(self) -> None:
        if self.saves:
            self._stop_on_nan()
            if not all(bool(torch.isfinite(parameter).all()) for parameter in self.learner.method.parameters()):
                raise RunFailed(f"the weights became NaN in epoch {self.state.epoch}: {LOWER_RATE}", "nan")
            self.checkpoints.save(self.learner, self.state)
        self.last_save = time.monotonic()
        self.clock = time.perf_counter()

    def _lap(self) -> float:
        now = time.perf_counter()
        lap, self.clock = now - self.clock, now
        return lap
