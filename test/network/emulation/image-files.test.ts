import { type ChildProcess, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { missingFor } from '../support/gate.ts';
import { end, UpHome } from '../support/up-process.ts';

const missing = missingFor('user');
const agnhost = 'registry.k8s.io/e2e-test-images/agnhost';

describe.each(['auto', 'processes'])('files of the machine as images, --containers=%s', (containers) => {
  describe.skipIf(missing !== '')(missing === '' ? 'by a user' : `(missing: ${missing})`, () => {
    const home = new UpHome('user');
    const folder = `/var/tmp/servicenet-image-${process.pid}-${containers}`;
    let up: ChildProcess;
    beforeAll(async () => {
      mkdirSync(folder);
      // It stays, so that others can be run beside it.
      const script = '#!/bin/sh\necho "real $*"\n[ "$1" != stay ] || exec sleep 1000\n';
      writeFileSync(join(folder, 'agnhost'), script, { mode: 0o755 });
      const image = join(folder, 'tool');
      mkdirSync(join(image, 'bin'), { recursive: true });
      mkdirSync(join(image, 'srv'));
      writeFileSync(join(image, 'tool'), '#!/bin/sh\necho "$0 $*"; other; cat /srv/data\n', { mode: 0o755 });
      writeFileSync(join(image, 'bin/other'), '#!/bin/sh\necho "$0"\n', { mode: 0o755 });
      writeFileSync(join(image, 'srv/data'), 'of the image\n');
      up = await home.start([
        ...['--nodes=1', `--containers=${containers}`, `--image=${agnhost}=${join(folder, 'agnhost')}`],
        `--image=ghcr.io/shop/tool=${image}`,
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
    const pod = (name: string, container: object, volumes: readonly object[] = []): void => {
      const spec = { restartPolicy: 'Never', containers: [{ name: 'main', ...container }], volumes };
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

    const ended = (name: string): string => {
      kubectl(['wait', '--for=jsonpath={.status.phase}=Succeeded', `pod/${name}`, '--timeout=60s']);
      return kubectl(['logs', name]);
    };

    it('are in the places of a folder, where no volume is', () => {
      const image = 'ghcr.io/shop/tool:v1';
      pod('folder', { image, args: ['-v'] });
      expect(ended('folder')).toBe('/tool -v\n/usr/bin/other\nof the image\n');
      const script = 'ls /srv; echo own >/srv/own; cat /srv/own; (echo >/bin/other) 2>/dev/null || echo kept';
      pod(
        'volume',
        { image, command: ['sh', '-c', script], volumeMounts: [{ name: 'v', mountPath: '/srv' }] },
        [{ name: 'v', emptyDir: {} }],
      );
      expect(ended('volume')).toBe('own\nkept\n');
      expect(readdirSync(join(folder, 'tool/srv'))).toEqual(['data']);
    });

    it('are a volume of an image, if it has a folder', async () => {
      const mounted = (name: string, reference: string): void =>
        pod(
          name,
          {
            image: 'busybox',
            command: ['sh', '-c', 'cat /image/srv/data; touch /image/new 2>/dev/null || echo refused'],
            volumeMounts: [{ name: 'v', mountPath: '/image' }],
          },
          [{ name: 'v', image: { reference } }],
        );
      mounted('image', 'ghcr.io/shop/tool:v2');
      expect(ended('image')).toBe('of the image\nrefused\n');
      mounted('no-image', 'ghcr.io/shop/web:v1');
      const reason = 'jsonpath={.status.containerStatuses[0].state.waiting.reason}';
      kubectl(['wait', `--for=${reason}=ContainerCreating`, 'pod/no-image', '--timeout=60s']);
      const failed = '--field-selector=involvedObject.name=no-image,reason=FailedMount';
      await expect
        .poll(() => kubectl(['get', 'events', failed, '-o=jsonpath={.items[*].message}']))
        .toBe(
          'MountVolume.SetUp failed for volume "v" : no image is pulled: --image ghcr.io/shop/web:v1=/FOLDER gives "ghcr.io/shop/web:v1" files of this machine',
        );
    });

    it('is what runs beside it', () => {
      pod('stays', { image: `${agnhost}:2.63.0`, args: ['stay'] });
      kubectl(['wait', '--for=condition=Ready', 'pod/stays', '--timeout=60s']);
      expect(kubectl(['exec', 'stays', '--', '/agnhost', 'connect', 'a:1'])).toBe('real connect a:1\n');
    });
  });
});
