import { expect, test } from 'vitest';
import { commandLine } from '../support/command-line.ts';

// Port 1 is closed.
const nowhere = ['--server', 'https://127.0.0.1:1'];

test.each([
  { args: ['audit', ...nowhere], expected: 2 },
  { args: ['pools', ...nowhere], expected: 1 },
  { args: ['import', 'metallb', ...nowhere], expected: 1 },
])('$args.0 says in one line what to do when the API server is not there', async ({ args, expected }) => {
  const { code, errors } = await commandLine(...args);
  expect(errors).toMatch(
    /^servicenet: GET https:.*: connect ECONNREFUSED 127.0.0.1:1: nothing listens .*check that it runs.*\n$/,
  );
  expect(code).toBe(expected);
});

test('pools plan names the file that cannot be read', async () => {
  const { code, errors } = await commandLine('pools', 'plan', ...nowhere, '-f', '/nowhere/pools.yaml');
  expect(errors).toMatch(/^servicenet: cannot read \/nowhere\/pools\.yaml: ENOENT: .*\n$/);
  expect(code).toBe(2);
});
