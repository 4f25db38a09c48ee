import { type ChildProcess, spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { forMakers } from '../support/for-makers.ts';
import { end, UpHome } from '../support/up-process.ts';

forMakers('where no program of the machine runs, a few commands are built in', (maker) => {
  const home = new UpHome(maker);
  let up: ChildProcess;
  beforeAll(async () => {
    up = await home.start(['--nodes=1', '--containers=off']);
    kubectl(['create', 'configmap', 'colors', '--from-literal=color=blue']);
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', labels: { app: 'web' } },
      spec: {
        containers: [
          {
            ...{ name: 'web', image: 'nginx', ports: [{ containerPort: 80 }] },
            env: [{ name: 'GREETING', value: 'good morning' }],
            volumeMounts: [{ name: 'colors', mountPath: '/etc/colors' }],
          },
        ],
        volumes: [{ name: 'colors', configMap: { name: 'colors' } }],
      },
    };
    kubectl(['apply', '-f', '-'], JSON.stringify(pod));
    kubectl(['expose', 'pod', 'web', '--port=80']);
    kubectl(['wait', '--for=condition=Ready', 'pod/web', '--timeout=60s']);
  });
  afterAll(async () => {
    await end(up, 'SIGKILL');
    home.remove();
  });

  const run = (args: readonly string[], input = '') =>
    spawnSync('kubectl', args, { encoding: 'utf8', env: home.environment, input });
  const kubectl = (args: readonly string[], input = ''): string => {
    const { stdout, stderr, status } = run(args, input);
    if (status !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  const inWeb = (...command: string[]): string => kubectl(['exec', 'web', '--', ...command]);

  it('on the files of the Pod, and in its network', async () => {
    expect(inWeb('hostname')).toBe('web\n');
    expect(inWeb('cat', '/etc/colors/color')).toBe('blue');
    expect(inWeb('ls', '/etc/colors')).toBe('color\n');
    expect(inWeb('cat', '/var/run/secrets/kubernetes.io/serviceaccount/namespace')).toBe('default');
    expect(inWeb('sh', '-c', 'echo "$GREETING"; cat /etc/hostname')).toBe('good morning\nweb\n');
    expect(inWeb('cat', '/etc/resolv.conf')).toContain('search default.svc.cluster.local');
    await expect
      .poll(() => run(['exec', 'web', '--', 'wget', '-qO-', 'http://web/hostname']).stdout)
      .toBe('web\n');
    expect(inWeb('nslookup', 'web')).toContain('Name:\tweb\nAddress: 10.96.');
    const listed = inWeb('ls', '/');
    expect(listed.split('\n')).toEqual(expect.arrayContaining(['etc', 'var']));
    expect(run(['exec', 'web', '--', 'cat', '/etc/shadow'])).toMatchObject({ status: 1, stdout: '' });
    expect(run(['exec', 'web', '--', 'cat', '/etc/colors/../../../etc/shadow'])).toMatchObject({
      status: 1,
      stdout: '',
    });
  });

  it('and the log and the exit code of a container are theirs', async () => {
    kubectl([
      'create',
      'job',
      'hello',
      '--image=busybox',
      '--',
      'sh',
      '-c',
      'date +%F; echo Hello from the cluster',
    ]);
    kubectl(['wait', '--for=condition=Complete', 'job/hello', '--timeout=60s']);
    expect(kubectl(['logs', 'job/hello'])).toMatch(/^\d{4}-\d{2}-\d{2}\nHello from the cluster\n$/);
    kubectl(['run', 'fails', '--image=busybox', '--restart=Never', '--', 'sh', '-c', 'echo no >/f']);
    const phase = [
      'get',
      'pod',
      'fails',
      '-o',
      'jsonpath={.status.containerStatuses[0].state.terminated.exitCode}',
    ];
    await expect.poll(() => kubectl(phase)).toBe('127');
  });

  it('others are refused, and the flag is named', () => {
    for (const command of [['sh'], ['sh', '-c', 'for i in 1 2; do echo $i; done'], ['python3', '-V']]) {
      const { status, stderr } = run(['exec', 'web', '--', ...command]);
      expect(status).toBe(127);
      expect(stderr).toContain('--containers=auto');
    }
  });
});
