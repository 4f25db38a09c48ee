import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';

/** The Kubernetes whose programs are built: the version that `modules/kubernetes/go.mod` requires. */
const kubernetesVersion = /k8s\.io\/kubernetes (v\S+)/.exec(
  readFileSync(join(import.meta.dirname, 'modules/kubernetes/go.mod'), 'utf8'),
)?.[1];

/** What is built and made stays here between runs, outside the checkout. */
export const cache = join(
  process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
  'servicenet',
  'test-cluster',
);

const [, major = '', minor = ''] = /^v(\d+)\.(\d+)/.exec(kubernetesVersion ?? '') ?? [];
const version = 'k8s.io/component-base/version';
const kubernetesFlags = ['gitVersion', 'gitMajor', 'gitMinor']
  .map((name, n) => `-X ${version}.${name}=${[kubernetesVersion, major, minor][n] ?? ''}`)
  .join(' ');

interface Program {
  /** The folder of its go.mod, from `modules` on. */
  readonly module: string;
  readonly package: string;
  /** Built by `go test -c`. */
  readonly isTest?: boolean;
}

const containerd = 'github.com/containerd/containerd/v2/cmd';
const cni = 'github.com/containernetworking/plugins/plugins';
const gatewayApi = '../../gateway-api';

/** Every program by its file name. */
const programs = {
  'kube-apiserver': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kube-apiserver' },
  'kube-controller-manager': {
    module: 'kubernetes',
    package: 'k8s.io/kubernetes/cmd/kube-controller-manager',
  },
  'kube-scheduler': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kube-scheduler' },
  kubelet: { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kubelet' },
  'kube-proxy': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kube-proxy' },
  kubectl: { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kubectl' },
  agnhost: { module: 'kubernetes', package: 'k8s.io/kubernetes/test/images/agnhost' },
  nonewprivs: { module: 'kubernetes', package: 'k8s.io/kubernetes/test/images/nonewprivs' },
  'e2e.test': { module: 'kubernetes', package: 'k8s.io/kubernetes/test/e2e', isTest: true },
  'sample-apiserver': { module: 'sample-apiserver', package: 'k8s.io/sample-apiserver' },
  etcd: { module: 'etcd', package: 'go.etcd.io/etcd/server/v3' },
  containerd: { module: 'containerd', package: `${containerd}/containerd` },
  'containerd-shim-runc-v2': { module: 'containerd', package: `${containerd}/containerd-shim-runc-v2` },
  ctr: { module: 'containerd', package: `${containerd}/ctr` },
  bridge: { module: 'cni', package: `${cni}/main/bridge` },
  'host-local': { module: 'cni', package: `${cni}/ipam/host-local` },
  loopback: { module: 'cni', package: `${cni}/main/loopback` },
  portmap: { module: 'cni', package: `${cni}/meta/portmap` },
  coredns: { module: 'coredns', package: 'github.com/coredns/coredns' },
  'metallb-controller': { module: 'metallb', package: 'go.universe.tf/metallb/controller' },
  'metallb-speaker': { module: 'metallb', package: 'go.universe.tf/metallb/speaker' },
  kwok: { module: 'kwok', package: 'sigs.k8s.io/kwok/cmd/kwok' },
  helm: { module: 'helm', package: 'helm.sh/helm/v4/cmd/helm' },
  pause: { module: 'pause', package: '.' },
  'echo-basic': { module: gatewayApi, package: 'sigs.k8s.io/gateway-api/conformance/echo-basic' },
  'gateway-api.test': { module: gatewayApi, package: '.', isTest: true },
} as const satisfies Record<string, Program>;

export type ProgramName = keyof typeof programs;

/** Where a program is, once it has been built. */
function pathOf(name: ProgramName): string {
  const { module } = programs[name];
  const folder = join(import.meta.dirname, 'modules', module);
  const hash = createHash('sha256');
  for (const file of ['go.mod', 'go.sum', 'main.go', 'conformance_test.go']) {
    if (existsSync(join(folder, file))) hash.update(readFileSync(join(folder, file)));
  }
  return join(cache, 'programs', `${basename(module)}-${hash.digest('hex').slice(0, 12)}`, name);
}

export function isBuilt(name: ProgramName): boolean {
  return existsSync(pathOf(name));
}

/**
 * The path of a program, built by the go command from the modules beside unless the cache has it. Statically linked: it
 * runs in images and on nodes alike. The first build of Kubernetes takes half an hour on two cores.
 *
 * @throws {Error} where the go command fails.
 */
export function program(name: ProgramName): string {
  const built = pathOf(name);
  if (existsSync(built)) return built;
  console.log(`building ${name}`);
  const { module, package: path, ...rest }: Program = programs[name];
  mkdirSync(dirname(built), { recursive: true });
  const temporary = mkdtempSync(join(dirname(built), '.build-'));
  const verb = rest.isTest === true ? ['test', '-c', '-vet=off'] : ['build'];
  execFileSync(
    'go',
    [...verb, '-trimpath', '-ldflags', `-s -w ${kubernetesFlags}`, '-o', join(temporary, name), path],
    {
      cwd: join(import.meta.dirname, 'modules', module),
      env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false' },
      stdio: 'inherit',
    },
  );
  renameSync(join(temporary, name), built);
  rmSync(temporary, { recursive: true });
  return built;
}

export const metalLbModule = 'go.universe.tf/metallb';

/**
 * The folder of a module in Go's module cache, for files that a program is run with.
 *
 * @throws {Error} where the go command fails.
 */
export function moduleFolder(name: ProgramName, module: string): string {
  const cwd = join(import.meta.dirname, 'modules', programs[name].module);
  return execFileSync('go', ['list', '-m', '-f', '{{.Dir}}', module], { cwd, encoding: 'utf8' }).trim();
}
