import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { sendSignal } from '../../../../src/emulation/containers/process-container.ts';

it('a signal to a process that has ended is no error', () => {
  const { pid } = spawnSync('true');
  expect(() => sendSignal(pid, 'SIGTERM')).not.toThrow();
});

it('a signal comes to the process', async () => {
  const child = spawn('sleep', ['60']);
  await once(child, 'spawn');
  sendSignal(child.pid ?? 0, 'SIGTERM');
  expect(await once(child, 'exit')).toEqual([null, 'SIGTERM']);
});
