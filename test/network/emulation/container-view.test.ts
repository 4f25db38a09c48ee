import { type ChildProcess, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makers } from '../support/gate.ts';
import { end, pathWithoutBubblewrap, UpHome } from '../support/up-process.ts';

/** What `--containers=auto`, the default, lets the programs of Pods see: nothing of the machine but its programs. */

/** In the name and the text of everything that is planted. */
const mark = `servicenet-planted-${process.pid}`;

const ways = makers.flatMap((each) => [
  { ...each, hasBubblewrap: true },
  { ...each, hasBubblewrap: false },
]);

for (const { maker, missing, hasBubblewrap } of ways) {
  const lacks = missing === '' ? '' : ` (missing: ${missing})`;
  const by = hasBubblewrap ? 'bubblewrap' : 'unshare';
  describe.skipIf(missing !== '')(`containers of ${maker}, by ${by}${lacks}`, () => {
    const home = new UpHome(maker);
    /** Folders of the machine in which a user or a service may keep what is not for others. */
    const places = [
      home.folder,
      ...['/etc', '/opt', '/srv', '/var/lib', '/var/tmp', '/tmp', '/root', '/mnt', '/home', '/usr/local/etc'],
    ].map((folder) => join(folder, `${mark}-${maker}-${by}`));
    /** Programs may keep their settings there: it is seen. */
    const seen = places.at(-1) ?? '';
    const shared = `/var/tmp/${mark}-shared-${maker}-${by}`;
    const servers: Server[] = [];
    let connections = 0;
    let up: ChildProcess;

    beforeAll(async () => {
      for (const place of places) {
        mkdirSync(place);
        chmodSync(place, 0o777);
        writeFileSync(join(place, mark), mark, { mode: 0o666 });
        const server = createServer((socket) => {
          connections++;
          socket.destroy();
        });
        server.listen(join(place, 'socket'));
        await once(server, 'listening');
        chmodSync(join(place, 'socket'), 0o777);
        servers.push(server);
      }
      mkdirSync(join(shared, 'within'), { recursive: true });
      writeFileSync(join(shared, 'within/file'), 'shared');
      symlinkSync('/etc', join(shared, 'out'));
      Object.assign(home.environment, { SERVICENET_PLANTED: mark });
      if (!hasBubblewrap) Object.assign(home.environment, { PATH: pathWithoutBubblewrap(home.folder) });
      up = await home.start(['--nodes=1', '--host-path-root', shared]);
    });
    afterAll(async () => {
      await end(up, 'SIGKILL');
      for (const server of servers) server.close();
      home.remove();
      for (const place of [...places, shared]) rmSync(place, { recursive: true, force: true });
    });

    const kubectl = (args: readonly string[], input = ''): string => {
      const options = { encoding: 'utf8', env: home.environment, input } as const;
      const { stdout, stderr, status } = spawnSync('kubectl', args, options);
      if (status !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
      return stdout;
    };
    const pod = (name: string, container: object, spec: object = {}): void => {
      const containers = [{ name: 'main', ...container }];
      const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { ...spec, containers } };
      kubectl(['apply', '-f', '-'], JSON.stringify(object));
    };
    const ready = (name: string): string =>
      kubectl(['wait', '--for=condition=Ready', `pod/${name}`, '--timeout=60s']);

    it('find no file, no socket and no variable of this machine, alone and in exec', () => {
      pod('alone', { image: 'busybox', command: ['sleep', '1000'], securityContext: { privileged: true } });
      pod('stand-in', { image: 'nginx', ports: [{ containerPort: 80 }] });
      const connect = `'${process.execPath}' -e 'const s=require("net").connect(process.argv[1]);s.on("error",()=>process.exit(1));s.on("connect",()=>process.exit(0))'`;
      const script = [
        `find / -path /proc -prune -o -path /usr -prune -o -name '*${mark}*' -print`,
        'find / -path /proc -prune -o -path /usr -prune -o -type s -print',
        ...places.map((place) => `cat '${place}/${mark}' && echo read ${place}`),
        ...places.map((place) => `${connect} '${place}/socket' && echo connected ${place}`),
        `cat '${home.kubeconfig}' && echo kubeconfig`,
        // Whoever is started here must not have it, at no moment.
        `for n in 1 2 3 4 5; do for f in /proc/[0-9]*/environ; do tr '\\0' '\\n' <$f; done; done | grep ${mark}`,
        'ls /root /home /srv /opt /mnt /media',
        'echo end',
      ].join('\n');
      for (const name of ['alone', 'stand-in']) {
        ready(name);
        const others = Array.from({ length: 3 }, () =>
          spawnSync('kubectl', ['exec', name, '--', 'true'], { env: home.environment }),
        );
        expect(others.map(({ status }) => status)).toEqual([0, 0, 0]);
        const { stdout } = spawnSync('kubectl', ['exec', name, '--', 'sh', '-c', script], {
          ...{ encoding: 'utf8', env: home.environment },
        });
        const lines = stdout.split('\n').filter((line) => !line.startsWith(seen) && line !== mark);
        const readable = lines.filter((line) => line.startsWith('read ') && !line.endsWith(seen));
        expect(readable).toEqual([]);
        expect(stdout.trim().split('\n').at(-1)).toBe('end');
        expect(
          lines.filter((line) => /planted|connected|kubeconfig/.test(line) && !line.endsWith(seen)),
        ).toEqual([]);
      }
      expect(connections).toBe(0);
    });

    it('see of hostPath volumes what --host-path-root names, and nothing else', async () => {
      const at = (path: string): object => ({
        restartPolicy: 'Never',
        volumes: [{ name: 'host', hostPath: { path } }],
      });
      const volumeMounts = [{ name: 'host', mountPath: '/hp' }];
      const reader = { image: 'busybox', command: ['cat', '/hp/file'], volumeMounts };
      pod('within', reader, at(join(shared, 'within')));
      await expect.poll(() => kubectl(['logs', 'within']).trim()).toBe('shared');
      for (const [name, path] of [
        ['home', home.folder],
        ['top', '/'],
        ['link', join(shared, 'out')],
        ['beside', `${shared}-else`],
      ] as const) {
        pod(name, reader, at(path));
        const message = 'jsonpath={.status.containerStatuses[0].state.waiting.message}';
        await expect.poll(() => kubectl(['get', 'pod', name, '-o', message])).toContain('--host-path-root');
      }
    });
  });
}
