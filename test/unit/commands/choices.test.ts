import { expect, test } from 'vitest';
import { localChoices } from '../../../src/commands/choices.ts';

test.each([
  ['a program', '/bin/sh', true],
  ['no file', '/no/such', false],
  ['a folder', '/etc', false],
  ['a file that cannot be run', '/etc/passwd', false],
])('%s is executable: %s, %s', (_name, path, expected) => {
  expect(localChoices.isExecutable(path)).toBe(expected);
});
