import { expect, test } from 'vitest';
import { isLastWriter } from '../../../src/objects/meta.ts';

const at = (manager: string, second: number): { manager: string; time: string } => ({
  manager,
  time: `2026-01-01T00:00:0${second}Z`,
});

test.each([
  ['ours alone', [at('servicenet', 1)], true],
  ['ours after another', [at('kubectl-edit', 1), at('servicenet', 2)], true],
  ['another after ours', [at('servicenet', 1), at('kubectl-edit', 2)], false],
  ['both in one second', [at('servicenet', 1), at('kubectl-edit', 1)], false],
  [
    'one of ours of another subresource',
    [at('servicenet', 1), at('kubectl-edit', 2), at('servicenet', 3)],
    true,
  ],
  ['no manager', [], false],
])('who wrote last: %s', (_name, managedFields, expected) => {
  expect(isLastWriter({ managedFields })).toBe(expected);
});
