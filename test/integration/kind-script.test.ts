import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { recordAt } from '../../src/objects/json.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';

/** What the tools do here, behind writing down how they were called: kind's cluster is the server of the test. */
const standIns = {
  docker: `case "$*" in 'network inspect '*) printf '172.18.0.0/16\\nfc00:f853:ccd:e793::/64\\n' ;; esac`,
  kind: `case "$1 $2" in
    'create cluster') cat "$6" >"$WORK/kind.yaml"; cp "$WORK/cluster" "$KUBECONFIG"; $AFTER_CREATE ;;
    'export logs') mkdir "$5"; echo log >"$5/pod.log" ;;
  esac`,
  // No Pod of the test's server runs the router.
  kubectl: `case "$*" in
    'get --raw '*) echo ok ;;
    *' -f -') cat >"$WORK/pool.yaml" ;;
    *' get service layer2 '*ingress*) echo 172.18.255.192 ;;
    # Each look finds another node.
    *' get service layer2 '*) echo "172.18.255.192 by node-$(wc -l <"$WORK/calls") on eth0 since now" ;;
    *) PATH="$OUTSIDE" exec $KUBECTL "$@" ;;
  esac`,
  curl: 'echo ok',
  // The suite is run by others; whatever else npm is asked for is done.
  npm: `case "$*" in
    'run test:e2e') echo "with $SERVICENET_E2E_CONTROLLERS" >>"$WORK/calls" ;;
    *) PATH="$OUTSIDE" exec $NPM "$@" ;;
  esac`,
};
const steps = [
  'docker build -t servicenet:e2e .',
  'kind create cluster --name servicenet-e2e-ipv4 --config',
  'kind load docker-image servicenet:e2e --name servicenet-e2e-ipv4',
  'kubectl apply --server-side -k deploy/overlays/kind',
  'kubectl wait --for=condition=Established crd/addresspools.servicenet.dev',
  'kubectl -n servicenet-system rollout status deployment/servicenet',
  'kubectl apply --server-side -k deploy/overlays/kind-router',
  'kubectl -n servicenet-system rollout status deployment/servicenet-router',
  'kubectl -n servicenet-system create ingress e2e',
  'kubectl get --raw /api/v1/namespaces/servicenet-system/services/servicenet-router:http/proxy/healthz',
  'kubectl -n servicenet-system delete ingress e2e',
  'npm run --silent servicenet -- audit --kubeconfig',
  'npm run test:e2e',
  'with deployed',
];
const ends = [
  'kind export logs --name',
  'kubectl get pods,services,',
  'kind delete cluster --name servicenet-e2e-ipv4',
];

describe('hack/kind-e2e.sh', () => {
  let work: string;

  beforeEach(() => {
    work = mkdtempSync(join(tmpdir(), 'servicenet-kind-'));
    writeFileSync(join(work, 'cluster'), '');
    for (const [name, does] of Object.entries(standIns)) {
      const failing = `case "${name} $*" in "$FAIL"*) exit 7 ;; esac`;
      writeFileSync(join(work, name), `#!/bin/sh\necho "${name} $*" >>"$WORK/calls"\n${failing}\n${does}\n`);
      chmodSync(join(work, name), 0o755);
    }
  });

  afterEach(() => {
    rmSync(work, { recursive: true });
  });

  /** With tools that do nothing, where the environment does not say what they do. */
  function start(words: string, environment: Readonly<Record<string, string>> = {}) {
    const outside = [dirname(process.execPath), process.env['PATH']].join(delimiter);
    const base = { PATH: `${work}:${outside}`, OUTSIDE: outside, WORK: work, TMPDIR: work };
    const tools = { KUBECTL: 'true', NPM: 'true', FAIL: 'nothing', AFTER_CREATE: '' };
    const unset = {
      KEEP_CLUSTER: '',
      KIND_NODE_IMAGE: '',
      NODE_DIGEST: '',
      ARTIFACTS: join(work, 'artifacts'),
    };
    return spawn('/bin/bash', ['hack/kind-e2e.sh', ...words.split(' ')], {
      env: { ...process.env, ...base, ...tools, ...unset, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own: signals reach the script and what it runs, as a terminal or a workflow sends them.
      detached: true,
    });
  }

  async function run(words: string, environment: Readonly<Record<string, string>> = {}) {
    const script = start(words, environment);
    let output = '';
    for (const stream of [script.stdout, script.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    }
    await once(script, 'close');
    return { status: script.exitCode, output };
  }

  const calls = (): string[] =>
    existsSync(join(work, 'calls')) ? readFileSync(join(work, 'calls'), 'utf8').trim().split('\n') : [];
  /** What was called, in the words of the expected. */
  const called = (expected: readonly string[]): string[] =>
    calls().map((line, i) => (line.startsWith(expected[i] ?? '\0') ? (expected[i] ?? '') : line));
  /** What of its own the script left. */
  const left = (): string[] => readdirSync(work).filter((name) => name.startsWith('tmp.'));

  it.each(['ipv4', 'ipv6', 'dual'])('makes a cluster of the family, with %s', async (family) => {
    const { status, output } = await run(family);
    expect(status, output).toBe(0);
    const expected = [...steps, ...ends].map((step) => step.replace('ipv4', family));
    expect(called(expected)).toEqual(expected);
    expect(recordAt(parse(readFileSync(join(work, 'kind.yaml'), 'utf8')), 'networking')).toMatchObject({
      ipFamily: family,
      kubeProxyMode: 'iptables',
    });
  });

  it('deploys the image and runs the suite, in a cluster that there is', async () => {
    const server = await startApiServer({ serviceClusterIpRange: 'fd00:10:96::/112', nodes: 2 });
    try {
      writeFileSync(join(work, 'cluster'), server.kubeconfig);
      const { status, output } = await run('ipv6', { KUBECTL: 'kubectl', NPM: 'npm' });
      expect(status, output).toBe(0);
      expect(output).toContain('deployment "servicenet" successfully rolled out');
      expect(output).toContain('deployment "servicenet-router" successfully rolled out');
      const deployments = '/apis/apps/v1/namespaces/servicenet-system/deployments/servicenet';
      const { body } = await call(server.client, 'GET', deployments);
      expect(JSON.stringify(body)).toContain('"image":"servicenet:e2e"');
      const cluster = 'servicenet-e2e-ipv6';
      expect(readFileSync(join(work, 'artifacts', cluster, 'pod.log'), 'utf8')).toBe('log\n');
      const objects = readFileSync(join(work, 'artifacts', `${cluster}-objects.txt`), 'utf8');
      expect(objects).toMatch(/^servicenet-system +service\/servicenet-metrics /m);
      expect(left()).toEqual([]);
    } finally {
      await server.stop();
    }
  });

  // The request through the router is tried again.
  it.each(steps.slice(0, -1).filter((step) => !step.startsWith('kubectl get --raw')))(
    'stops where "%s" fails, collects the logs and leaves no cluster',
    async (step) => {
      const { status } = await run('ipv4', { FAIL: step });
      expect(status).toBe(7);
      const expected = [...steps.slice(0, steps.indexOf(step) + 1), ...ends];
      expect(called(expected)).toEqual(expected);
      expect(left()).toEqual([]);
    },
  );

  it.each(ends)('ends as the suite did when "%s" fails', async (step) => {
    const { status } = await run('ipv4', { FAIL: step });
    expect(status).toBe(0);
    expect(called([...steps, ...ends])).toEqual([...steps, ...ends]);
  });

  it('keeps the cluster when asked to, also after a failure', async () => {
    const { status, output } = await run('ipv4', { KEEP_CLUSTER: '1', FAIL: 'npm run test:e2e' });
    expect(status).toBe(7);
    expect(output).toContain('kept: kind get kubeconfig --name servicenet-e2e-ipv4');
    expect(calls().filter((line) => line.startsWith('kind delete'))).toEqual([]);
  });

  it('hands on the node image and the digest of the base image', async () => {
    await run('ipv4', { KIND_NODE_IMAGE: 'kindest/node:v1.36.4', NODE_DIGEST: 'sha256:abc' });
    expect(calls()[0]).toBe('docker build --build-arg NODE_DIGEST=sha256:abc -t servicenet:e2e .');
    expect(calls()[1]).toMatch(/ --wait 120s --image kindest\/node:v1\.36\.4$/);
  });

  it('deploys the node agent into a cluster without kube-proxy', async () => {
    const { status } = await run('dual servicenet');
    expect(status).toBe(0);
    const config = recordAt(parse(readFileSync(join(work, 'kind.yaml'), 'utf8')), 'networking');
    expect(config).toMatchObject({ kubeProxyMode: 'none' });
    const kubectl = calls().filter((line) => line.startsWith('kubectl '));
    expect(kubectl.slice(0, 6)).toEqual([
      'kubectl apply --server-side -k deploy/overlays/kind-node',
      expect.stringContaining('kubectl wait --for=condition=Established'),
      'kubectl -n servicenet-system create configmap servicenet-node --from-literal=KUBERNETES_SERVICE_HOST=servicenet-e2e-dual-node-control-plane --from-literal=KUBERNETES_SERVICE_PORT=6443',
      'kubectl -n servicenet-system rollout status daemonset/servicenet-agent --timeout=120s',
      'kubectl -n kube-system rollout status deployment/coredns --timeout=120s',
      'kubectl -n servicenet-system rollout status deployment/servicenet --timeout=120s',
    ]);
    expect(calls().at(-1)).toBe('kind delete cluster --name servicenet-e2e-dual-node');
  });

  it.each([
    ['ipv4', '172.18.255.192/27'],
    ['ipv6', 'fc00:f853:ccd:e793::ff00/120'],
  ])(
    'announces an address on the network of %s, and asks it before and after a move',
    async (family, range) => {
      const { status, output } = await run(`${family} layer2`);
      expect(status, output).toBe(0);
      const pool: unknown = parse(readFileSync(join(work, 'pool.yaml'), 'utf8'));
      expect(pool).toMatchObject({ kind: 'AddressPool', spec: { addresses: [range] } });
      const made = calls();
      const begin = made.findIndex((line) => line.startsWith('curl '));
      expect(made.slice(begin - 1, begin + 6)).toEqual([
        expect.stringContaining('get service layer2'),
        expect.stringMatching(/^curl .*http:\/\/172\.18\.255\.192\/ready$/),
        expect.stringMatching(/^kubectl cordon node-\d+$/),
        expect.stringContaining('get service layer2'),
        expect.stringMatching(/^curl .*http:\/\/172\.18\.255\.192\/ready$/),
        expect.stringMatching(/^kubectl uncordon node-\d+$/),
        'kubectl -n kube-system delete service layer2',
      ]);
      expect(made.at(-1)).toBe(`kind delete cluster --name servicenet-e2e-${family}-layer2`);
    },
  );

  it('leaves no cluster when it is stopped in the middle', async () => {
    const script = start('ipv4', { AFTER_CREATE: 'sleep 600' });
    const closed = once(script, 'close');
    await expect.poll(calls).toContainEqual(expect.stringMatching(/^kind create/));
    if (script.pid === undefined) throw new Error('the script was not started');
    process.kill(-script.pid, 'SIGTERM');
    expect(await closed).toEqual([null, 'SIGTERM']);
    expect(calls().at(-1)).toBe(ends.at(-1));
    expect(left()).toEqual([]);
  });

  it('wants a family that kind knows, a proxy, and its tools', async () => {
    for (const words of ['ipv5', 'ipv4 cilium']) {
      expect(await run(words)).toMatchObject({
        status: 2,
        output: 'usage: hack/kind-e2e.sh [ipv4|ipv6|dual] [kube-proxy|servicenet|layer2]\n',
      });
    }
    rmSync(join(work, 'kind'));
    symlinkSync('/usr/bin/dirname', join(work, 'dirname'));
    expect(await run('ipv4', { PATH: work })).toMatchObject({ status: 2 });
    expect(calls()).toEqual([]);
  });
});
