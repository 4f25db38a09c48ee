import { type RunnerTask, type RunnerTestFile, TestRunner } from 'vitest';
import { isTimeOver } from './time-over.ts';

/** Skips files for which the time of the run is over as a whole: they start no servers for tests that do not begin. */
export default class InTimeRunner extends TestRunner {
  onCollected(files: readonly RunnerTestFile[] = []): void {
    if (isTimeOver()) files.forEach(skip);
  }
}

function skip(task: RunnerTask): void {
  task.mode = 'skip';
  if ('tasks' in task) task.tasks.forEach(skip);
}
