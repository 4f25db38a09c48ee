import { afterEach, expect, test, vi } from 'vitest';
import { runCommandLine } from '../../src/commands/command-line/run-command-line.ts';

afterEach(() => {
  vi.restoreAllMocks();
  process.exitCode = undefined;
});

/** The exit code of a command, and what it says on standard error. */
async function run(...args: string[]): Promise<{ code: number; errors: string }> {
  let errors = '';
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    errors += String(text);
    return true;
  });
  const code = await runCommandLine(['node', 'servicenet', ...args]);
  return { code, errors };
}

// Port 1 is closed.
const nowhere = ['--server', 'https://127.0.0.1:1'];

test.each([
  { args: ['audit', ...nowhere], expected: 2 },
  { args: ['pools', ...nowhere], expected: 1 },
  { args: ['import', 'metallb', ...nowhere], expected: 1 },
])('$args.0 says in one line what to do when the API server is not there', async ({ args, expected }) => {
  const { code, errors } = await run(...args);
  expect(errors).toMatch(
    /^servicenet: GET https:.*: connect ECONNREFUSED 127.0.0.1:1: nothing listens .*check that it runs.*\n$/,
  );
  expect(code).toBe(expected);
});

test('pools plan names the file that cannot be read', async () => {
  const { code, errors } = await run('pools', 'plan', ...nowhere, '-f', '/nowhere/pools.yaml');
  expect(errors).toMatch(/^servicenet: cannot read \/nowhere\/pools\.yaml: ENOENT: .*\n$/);
  expect(code).toBe(2);
});
