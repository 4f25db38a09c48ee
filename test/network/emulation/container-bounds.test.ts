import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Container, PodSpec } from '../../../src/objects/types/core.generated.ts';
import { forMakers } from '../support/for-makers.ts';
import { end, UpHome } from '../support/up-process.ts';

/** Prints `NAME yes` or `NAME no`: what a container could do. */
const attempts = (outside: string, control: string): string => {
  const connect = (path: string): string =>
    `'${process.execPath}' -e 'const s=require("net").connect(process.argv[1]);s.on("error",()=>process.exit(1));s.on("connect",()=>process.exit(0))' '${path}'`;
  const tries: Readonly<Record<string, string>> = {
    'write a hostPath': 'echo pwned >/hp/f',
    'make a file in a hostPath': 'touch /hp/new',
    'write a file of the machine': `echo pwned >'${outside}/f'; cat '${outside}/f' | grep -q machine && false`,
    'write a parameter': ': >>/proc/sys/kernel/core_pattern',
    'write sysrq-trigger': ': >>/proc/sysrq-trigger',
    'remount the top': 'mount -o remount,rw,bind / && touch /x && test -d /opt/x',
    'remount a hostPath': 'mount -o remount,rw,bind /hp && touch /hp/new',
    'remount a folder': 'mount -o remount,rw,bind /boot && touch /boot/servicenet-new',
    'remount parameters': 'mount -o remount,rw,bind /proc/sys && : >>/proc/sys/kernel/core_pattern',
    'remount in a user namespace': `unshare -Urm sh -c 'mount -o remount,rw,bind /hp && touch /hp/new'`,
    'raise its own limits':
      'for f in $(find /sys/fs/cgroup -name "*.limit_in_bytes" -o -name memory.max); do echo -1 >$f && exit; done; false',
    mount: 'mount -t tmpfs tmpfs /srv',
    'make a device': 'mknod /tmp/device b 8 0',
    'connect a socket of the machine': connect(`${outside}/s`),
    'connect a socket of a hostPath': connect('/hp/s'),
    'connect the control socket': connect(control),
    'see the credentials of the network': 'cat /run/kubeconfig',
  };
  return Object.entries(tries)
    .map(
      ([name, script]) =>
        `if ( ${script} ) >/dev/null 2>&1; then echo '${name} yes'; else echo '${name} no'; fi`,
    )
    .join('\n');
};

forMakers('containers as processes keep what is not theirs as it is', (maker) => {
  const home = new UpHome(maker);
  const outside = `/var/tmp/servicenet-outside-${process.pid}-${maker}`;
  const control = `${home.kubeconfig}.sock`;
  const connections: unknown[] = [];
  let server: Server;
  let up: ChildProcess;

  beforeAll(async () => {
    mkdirSync(outside);
    chmodSync(outside, 0o777);
    writeFileSync(join(outside, 'f'), 'machine');
    chmodSync(join(outside, 'f'), 0o666);
    server = createServer((socket) => connections.push(socket.destroy()));
    server.listen(join(outside, 's'));
    await once(server, 'listening');
    chmodSync(join(outside, 's'), 0o777);
    // Folders on the way to mounts do not depend on it.
    const mask = process.umask(0o077);
    up = await home.start(['--containers=processes', '--nodes=1']);
    process.umask(mask);
  });
  afterAll(async () => {
    await end(up, 'SIGKILL');
    server.close();
    home.remove();
    rmSync(outside, { recursive: true });
  });

  const kubectl = (args: readonly string[], input = ''): string => {
    const { stdout, stderr, status } = spawnSync('kubectl', args, {
      encoding: 'utf8',
      env: home.environment,
      input,
    });
    if (status !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  const run = (name: string, container: Partial<Container>, spec: Partial<PodSpec> = {}): void => {
    const main = { name: 'main', image: 'busybox', ...container };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { ...spec, containers: [main] } };
    kubectl(['apply', '-f', '-'], JSON.stringify(pod));
  };
  /** What a Pod printed until its end. */
  const printed = async (name: string): Promise<readonly string[]> => {
    const phase = (): string => kubectl(['get', 'pod', name, '-o', 'jsonpath={.status.phase}']);
    await expect.poll(phase).toMatch(/Succeeded|Failed/);
    return kubectl(['logs', name]).trim().split('\n');
  };
  const ofMachine = (path: string): Partial<PodSpec> => ({
    restartPolicy: 'Never',
    volumes: [{ name: 'host', hostPath: { path } }],
  });
  const atHp = { volumeMounts: [{ name: 'host', mountPath: '/hp' }] };

  it.each([false, true])('with privileged: %s', async (privileged) => {
    const name = privileged ? 'privileged' : 'usual';
    const command = ['sh', '-c', `${attempts(outside, control)}; grep CapBnd /proc/self/status`];
    run(name, { command, ...atHp, securityContext: { privileged } }, ofMachine(outside));
    const lines = await printed(name);
    expect(lines.filter((line) => line.endsWith(' yes'))).toEqual([]);
    expect(lines.filter((line) => line.endsWith(' no'))).toHaveLength(17);
    expect(connections).toEqual([]);
    expect(readdirSync(outside).sort()).toEqual(['f', 's']);
    expect(readFileSync(join(outside, 'f'), 'utf8')).toBe('machine');
    // sys_admin, sys_module, sys_rawio, sys_boot, sys_time, mknod, dac_read_search, syslog, bpf: by their numbers.
    const bound = BigInt(`0x${/CapBnd:\s*(\w+)/.exec(lines.join('\n'))?.[1] ?? ''}`);
    for (const number of [21n, 16n, 17n, 22n, 25n, 27n, 2n, 34n, 39n])
      expect(bound & (1n << number), String(number)).toBe(0n);
  });

  it.each([
    ['/proc', '/proc'],
    ['/run', '/run'],
    ['/var/run', '/run'],
    [join(outside, 's'), 'no file and no folder'],
  ])('a hostPath of %s is refused', async (path, why) => {
    const name = `refused-${path.replaceAll(/[^a-z]/g, '').slice(-20)}`;
    run(name, { command: ['true'], ...atHp }, ofMachine(path));
    const message = 'jsonpath={.status.containerStatuses[0].state.waiting.message}';
    await expect.poll(() => kubectl(['get', 'pod', name, '-o', message])).toContain(why);
  });

  it('a mount inside of a volume does not leave it by a link', async () => {
    const target = maker === 'root' ? outside : mkdtempSync('/var/tmp/servicenet-target-');
    chmodSync(target, 0o777);
    kubectl(['create', 'configmap', 'colors', '--from-literal=color=blue']);
    const links = `ln -s '/oldroot${target}' /v/old; ln -s '${target}' /v/out; mkdir /v/real; ln -s real /v/in`;
    const nested = (name: string, at: string, more: Partial<Container>, script = 'true'): void => {
      const volumeMounts = [
        { name: 'v', mountPath: '/mnt' },
        { name: 'w', mountPath: at },
        ...(more.volumeMounts ?? []),
      ];
      run(
        name,
        { command: ['sh', '-c', script], ...more, volumeMounts },
        {
          restartPolicy: 'Never',
          volumes: [
            { name: 'v', emptyDir: {} },
            { name: 'w', emptyDir: {} },
            { name: 's', configMap: { name: 'colors' } },
          ],
          initContainers: [
            {
              name: 'links',
              image: 'busybox',
              command: ['sh', '-c', links],
              volumeMounts: [{ name: 'v', mountPath: '/v' }],
            },
          ],
        },
      );
    };
    const message = 'jsonpath={.status.containerStatuses[0].state.waiting.message}';
    for (const link of ['old', 'out']) {
      nested(`nested-${link}`, `/mnt/${link}/made`, {});
      await expect
        .poll(() => kubectl(['get', 'pod', `nested-${link}`, '-o', message]))
        .toContain('cannot mount at');
      nested(`message-${link}`, '/w', { terminationMessagePath: `/mnt/${link}/made` });
      await expect
        .poll(() => kubectl(['get', 'pod', `message-${link}`, '-o', message]))
        .toContain('cannot mount at');
    }
    expect(readdirSync(target)).not.toContain('made');
    const inside = { volumeMounts: [{ name: 's', mountPath: '/mnt/in/color', subPath: 'color' }] };
    const script = `touch /mnt/real/deep/w/own && ls /mnt/in/deep/w; cat /mnt/real/color; echo; (echo x >/mnt/in/color) 2>/dev/null || echo kept; echo said >/mnt/in/message`;
    nested('nested', '/mnt/in/deep/w', { ...inside, terminationMessagePath: '/mnt/in/message' }, script);
    expect(await printed('nested')).toEqual(['own', 'blue', 'kept']);
    const said = 'jsonpath={.status.containerStatuses[0].state.terminated.message}';
    expect(kubectl(['get', 'pod', 'nested', '-o', said])).toBe('said\n');
    if (target !== outside) rmSync(target, { recursive: true });
  });

  it('a file of a hostPath is read', async () => {
    run(
      'file',
      { command: ['sh', '-c', 'cat /hp; echo; (echo x >/hp) 2>/dev/null || echo kept'], ...atHp },
      ofMachine(join(outside, 'f')),
    );
    expect(await printed('file')).toEqual(['machine', 'kept']);
  });

  it('exec runs in a container that a server of ours stands in for, with its token', () => {
    run('standing', { image: 'nginx' });
    kubectl(['wait', 'pod', 'standing', '--for=condition=Ready', '--timeout=60s']);
    const file = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';
    expect(kubectl(['exec', 'standing', '--', 'cat', file])).toBe('default');
  });

  it('a program that exec started outlives its client, whatever it prints then', async () => {
    run('lasting', { command: ['sleep', '1000'] });
    kubectl(['wait', 'pod', 'lasting', '--for=condition=Ready', '--timeout=60s']);
    const script =
      'echo begun; while [ ! -e /tmp/gone ]; do sleep 0.1; done; seq 100000; echo done >/tmp/done';
    for (const flags of [[], ['-t'], ['-i']]) {
      const command = ['exec', ...flags, 'lasting', '--', 'sh', '-c', script];
      const client = spawn('kubectl', command, { env: home.environment, stdio: ['pipe', 'pipe', 'inherit'] });
      await once(client.stdout, 'data');
      const gone = once(client, 'exit');
      client.kill('SIGKILL');
      await gone;
      kubectl(['exec', 'lasting', '--', 'touch', '/tmp/gone']);
      const look = (): string => kubectl(['exec', 'lasting', '--', 'sh', '-c', 'cat /tmp/done || true']);
      await expect.poll(look).toBe('done\n');
      kubectl(['exec', 'lasting', '--', 'rm', '/tmp/gone', '/tmp/done']);
    }
  });

  it.skipIf(maker !== 'root')(
    'an ordinary user enters the parents of mounts, and writes to an emptyDir',
    async () => {
      kubectl(['create', 'configmap', 'settings', '--from-literal=color=blue']);
      const token = '/var/run/secrets/kubernetes.io/serviceaccount';
      const script = `cat ${token}/namespace; echo; cat /a/b/c/color; echo; touch /e/f/own && echo own; stat -c %a ${token}/.. /a /a/b /e /e/f`;
      const volumes = [
        { name: 'e', emptyDir: {} },
        { name: 's', configMap: { name: 'settings' } },
      ];
      const volumeMounts = [
        { name: 'e', mountPath: '/e/f' },
        { name: 's', mountPath: '/a/b/c' },
      ];
      const securityContext = { runAsUser: 65534 };
      run(
        'ordinary',
        { command: ['sh', '-c', script], volumeMounts },
        { restartPolicy: 'Never', volumes, securityContext },
      );
      expect(await printed('ordinary')).toEqual([
        'default',
        'blue',
        'own',
        '755',
        '755',
        '755',
        '755',
        '777',
      ]);
    },
  );

  /** A hostPath of the machine of a type. */
  const ofType = (name: string, type: string): Partial<PodSpec> => ({
    restartPolicy: 'Never',
    volumes: [{ name: 'host', hostPath: { path: join(outside, name), type } }],
  });

  it.each([
    ['f', 'Directory', /hostPath type check failed: .* is not a directory$/],
    ['none', 'DirectoryOrCreate', /is not there: up makes it with --writable-host-paths alone$/],
    ['none', 'FileOrCreate', /is not there: up makes it with --writable-host-paths alone$/],
  ])('a Pod waits for %s of the type %s', async (path, type, why) => {
    const name = `waits-${path}-${type.toLowerCase()}`;
    run(name, { command: ['true'], ...atHp }, ofType(path, type));
    const events = ['get', 'events', '--field-selector', `involvedObject.name=${name},reason=FailedMount`];
    const message = (): string => kubectl([...events, '-o', 'jsonpath={.items[*].message}']);
    await expect.poll(message).toMatch(why);
    kubectl(['delete', 'pod', name, '--now']);
  });

  it('with --writable-host-paths, a hostPath is the folder of the machine, and nothing else is', async () => {
    await end(up, 'SIGTERM');
    up = await home.start(['--containers=processes', '--nodes=1', '--writable-host-paths']);
    const lines = attempts(outside, control);
    run(
      'writing',
      { command: ['sh', '-c', lines], ...atHp, securityContext: { privileged: true } },
      ofMachine(outside),
    );
    expect((await printed('writing')).filter((line) => line.endsWith(' yes'))).toEqual([
      'write a hostPath yes',
      'make a file in a hostPath yes',
      'remount in a user namespace yes',
      'connect a socket of a hostPath yes',
    ]);
    expect(readdirSync(outside).sort()).toEqual(['f', 'new', 's']);

    const write = (name: string, type: string, script: string): void =>
      run(name, { command: ['sh', '-c', script], ...atHp }, ofType(`made/${name}`, type));
    write('folder', 'DirectoryOrCreate', 'echo folder >/hp/x; ls -d /hp/');
    expect(await printed('folder')).toEqual(['/hp/']);
    write('text', 'FileOrCreate', 'echo text >/hp; stat -c %F /hp');
    expect(await printed('text')).toEqual(['regular file']);
    // A container runtime makes what has no type.
    write('untyped', '', 'echo untyped >/hp/x; ls -d /hp/');
    expect(await printed('untyped')).toEqual(['/hp/']);
    const made = (path: string): string => readFileSync(join(outside, 'made', path), 'utf8');
    expect([made('folder/x'), made('text'), made('untyped/x')]).toEqual(['folder\n', 'text\n', 'untyped\n']);
  });
});
