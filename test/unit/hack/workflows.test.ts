import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { at, listAt, recordAt } from '../../../src/objects/json.ts';

const directory = '.github/workflows';

// https://docs.github.com/en/actions/reference/security/secure-use
test.each(readdirSync(directory))(
  '%s may only read, but where it publishes, and runs only actions pinned by their commits',
  (file) => {
    const text = readFileSync(join(directory, file), 'utf8');
    const workflow: unknown = parse(text);
    expect(at(workflow, 'permissions')).toEqual({ contents: 'read' });
    const actions = [...text.matchAll(/uses: (.*)/g)].map(([, action = '']) => action);
    expect(actions.length).toBeGreaterThan(0);
    for (const action of actions) expect(action).toMatch(/^[\w-]+\/[\w-]+@[\da-f]{40} # v\d+\.\d+\.\d+$/);
    for (const job of Object.values(recordAt(workflow, 'jobs'))) {
      if (file !== 'release.yaml') expect(job).not.toHaveProperty('permissions');
      expect(job).toHaveProperty('timeout-minutes');
      for (const step of listAt(job, 'steps')) {
        if (String(at(step, 'uses')).startsWith('actions/checkout@')) {
          expect(at(step, 'with', 'persist-credentials')).toBe(false);
        }
        // What an expression holds comes through the environment: in a script it would be code.
        expect(String(at(step, 'run'))).not.toContain('${{');
      }
    }
  },
);
