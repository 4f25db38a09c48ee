import { expect, test } from 'vitest';
import { localChoices } from '../../../src/commands/choices.ts';

test.each([
  ['a program', '/bin/sh', 'executable'],
  ['no file', '/no/such', undefined],
  ['a folder', '/etc', 'folder'],
  ['a file that cannot be run', '/etc/passwd', undefined],
])('%s, %s, is %s', (_name, path, expected) => {
  expect(localChoices.isExecutable(path)).toBe(expected === 'executable');
  expect(localChoices.isFolder(path)).toBe(expected === 'folder');
});
