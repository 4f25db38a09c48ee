import { type ChildProcess, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { missingFor } from '../support/gate.ts';
import { end, UpHome } from '../support/up-process.ts';

const missing = missingFor('user');
const agnhost = 'registry.k8s.io/e2e-test-images/agnhost';

describe.each(['auto', 'processes'])('a file of the machine as an image, --containers=%s', (containers) => {
  describe.skipIf(missing !== '')(missing === '' ? 'by a user' : `(missing: ${missing})`, () => {
    const home = new UpHome('user');
    const folder = `/var/tmp/servicenet-image-${process.pid}-${containers}`;
    let up: ChildProcess;
    beforeAll(async () => {
      mkdirSync(folder);
      // It stays, so that others can be run beside it.
      const script = '#!/bin/sh\necho "real $*"\n[ "$1" != stay ] || exec sleep 1000\n';
      writeFileSync(join(folder, 'agnhost'), script, { mode: 0o755 });
      up = await home.start([
        ...['--nodes=1', `--containers=${containers}`, `--image=${agnhost}=${join(folder, 'agnhost')}`],
      ]);
    });
    afterAll(async () => {
      await end(up, 'SIGKILL');
      home.remove();
      rmSync(folder, { recursive: true });
    });

    const kubectl = (args: readonly string[], input = ''): string => {
      const options = { encoding: 'utf8', env: home.environment, input } as const;
      const { stdout, stderr, status } = spawnSync('kubectl', args, options);
      if (status !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
      return stdout;
    };
    const pod = (name: string, container: object): void => {
      const spec = { restartPolicy: 'Never', containers: [{ name: 'main', ...container }] };
      const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec };
      kubectl(['apply', '-f', '-'], JSON.stringify(object));
    };

    it.each([
      ['by-command', { command: ['/agnhost', 'netexec'], args: ['--http-port=80'] }],
      ['by-arguments', { args: ['netexec', '--http-port=80'] }],
      ['by-shell', { command: ['sh', '-c', '/agnhost netexec --http-port=80'] }],
    ])('is what runs, in the place of our stand-in: %s', (name, container) => {
      pod(name, { image: `${agnhost}:2.63.0`, ...container });
      kubectl(['wait', '--for=jsonpath={.status.phase}=Succeeded', `pod/${name}`, '--timeout=60s']);
      expect(kubectl(['logs', name])).toBe('real netexec --http-port=80\n');
    });

    it('is what runs beside it', () => {
      pod('stays', { image: `${agnhost}:2.63.0`, args: ['stay'] });
      kubectl(['wait', '--for=condition=Ready', 'pod/stays', '--timeout=60s']);
      expect(kubectl(['exec', 'stays', '--', '/agnhost', 'connect', 'a:1'])).toBe('real connect a:1\n');
    });
  });
});
