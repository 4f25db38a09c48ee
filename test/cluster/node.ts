import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { listAt, textAt } from '../../src/objects/json.ts';
import { machines, type NodeName, ranges } from './addresses.ts';
import { kubectl } from './control-plane.ts';
import { onMachine, run, start, until } from './processes.ts';
import { program } from './programs.ts';

const plugins = ['bridge', 'host-local', 'loopback', 'portmap'] as const;

export const pauseImage = 'registry.k8s.io/pause:3.10.2';

/** A kubelet with containerd in namespaces of its own. */
export class Node {
  readonly name: NodeName;
  readonly #directory: string;
  readonly #logs: string;
  /** The first process of the node's namespaces. */
  #first = 0;
  kubelet = 0;

  constructor(name: NodeName, directory: string, logs: string) {
    this.name = name;
    this.#directory = join(directory, name);
    this.#logs = logs;
  }

  /** The words before a program that runs on the node. */
  get words(): readonly [string, ...string[]] {
    return [join(import.meta.dirname, 'enter.sh'), this.name, String(this.#first)];
  }

  /** Runs a program on the node, and gives what it printed. */
  run(name: string, words: readonly string[], input = ''): string {
    const [enter, ...rest] = this.words;
    return run(enter, [...rest, name, ...words], input);
  }

  /** Makes the machine, and starts containerd with the images, which are docker archives. */
  async start(images: readonly string[]): Promise<void> {
    const directory = this.#directory;
    const programs = join(directory, 'plugins');
    mkdirSync(join(directory, 'net.d'), { recursive: true });
    mkdirSync(programs, { recursive: true });
    for (const plugin of plugins) copyFileSync(program(plugin), join(programs, plugin));
    writeFileSync(join(directory, 'net.d', '10-rig.conflist'), JSON.stringify(networkConfig(this.name)));
    writeFileSync(join(directory, 'containerd.toml'), containerdConfig());
    writeFileSync(join(directory, 'kubelet.yaml'), JSON.stringify(kubeletConfig(directory)));
    // containerd looks for its shim in the PATH.
    copyFileSync(program('containerd-shim-runc-v2'), join(directory, 'containerd-shim-runc-v2'));
    const machine = start(this.#logs, this.name, [
      join(import.meta.dirname, 'node.sh'),
      ...[this.name, directory, programs, machines.out.ipv4],
    ]);
    await until(`node ${this.name}`, 20, () => existsSync(join(directory, 'ready')));
    // unshare is the parent of the first process.
    this.#first = Number(readFileSync(`/proc/${machine}/task/${machine}/children`, 'utf8').trim());
    const path = `PATH=${directory}:${process.env['PATH'] ?? ''}`;
    start(this.#logs, `containerd-${this.name}`, [
      ...this.words,
      ...['env', path, program('containerd'), `--config=${join(directory, 'containerd.toml')}`],
    ]);
    const ctr = (...words: string[]): string => this.run(program('ctr'), ['--namespace=k8s.io', ...words]);
    await until(`containerd of ${this.name}`, 30, () => ctr('version').includes('Server'));
    for (const image of images) ctr('images', 'import', '--local', image);
  }

  /** Starts the kubelet, for which the Node object is there with its ranges of Pods. */
  join(kubeconfig: string): void {
    const { pods4, pods6, ipv4, ipv6 } = machines[this.name];
    const node = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: this.name, labels: { 'kubernetes.io/hostname': this.name } },
      spec: { podCIDR: pods4, podCIDRs: [pods4, pods6] },
    };
    kubectl(kubeconfig, ['apply', '-f', '-'], JSON.stringify(node));
    this.kubelet = start(this.#logs, `kubelet-${this.name}`, [
      ...this.words,
      ...[program('kubelet'), `--config=${join(this.#directory, 'kubelet.yaml')}`],
      `--kubeconfig=${join(this.#directory, '../pki', `kubelet-${this.name}.conf`)}`,
      ...[`--hostname-override=${this.name}`, `--node-ip=${ipv4},${ipv6}`, '--v=2'],
      `--node-labels=topology.kubernetes.io/zone=zone-${this.name}`,
    ]);
  }

  /** Whether its condition Ready is True. */
  isReady(kubeconfig: string): boolean {
    const node: unknown = JSON.parse(kubectl(kubeconfig, ['get', 'node', this.name, '--output=json']));
    return listAt(node, 'status', 'conditions').some(
      (condition) => textAt(condition, 'type') === 'Ready' && textAt(condition, 'status') === 'True',
    );
  }
}

/** Words for a program on the network of a machine that is no node. */
export function words(machine: 'cp' | 'out' | 'far', ...rest: readonly string[]): string[] {
  return [...onMachine(machine), ...rest];
}

function networkConfig(name: NodeName): unknown {
  const { pods4, pods6 } = machines[name];
  const ipam = {
    type: 'host-local',
    ranges: [[{ subnet: pods4 }], [{ subnet: pods6 }]],
    routes: [{ dst: '0.0.0.0/0' }, { dst: '::/0' }],
  };
  return {
    cniVersion: '1.0.0',
    name: 'rig',
    plugins: [
      // ipMasq would masquerade between nodes, too: policies and source addresses would not hold.
      { type: 'bridge', bridge: 'cni0', isGateway: true, ipMasq: false, hairpinMode: true, ipam },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  };
}

function containerdConfig(): string {
  return `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  use_local_image_pull = true
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "${pauseImage}"
[plugins.'io.containerd.cri.v1.runtime']
  # Without CAP_SYS_RESOURCE a score cannot be lowered.
  restrict_oom_score_adj = true
  disable_apparmor = true
  tolerate_missing_hugetlb_controller = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["/opt/cni/bin"]
  conf_dir = "/etc/cni/net.d"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = false
`;
}

function kubeletConfig(directory: string): unknown {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: join(directory, '../pki/ca.crt') },
    },
    authorization: { mode: 'Webhook' },
    clusterDomain: 'cluster.local',
    clusterDNS: [ranges.dns],
    resolvConf: join(directory, 'resolv.conf'),
    containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
    cgroupDriver: 'cgroupfs',
    failCgroupV1: false,
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    failSwapOn: false,
    oomScoreAdj: 0,
    localStorageCapacityIsolation: false,
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    evictionHard: {
      'memory.available': '100Mi',
      ...{ 'nodefs.available': '1%', 'imagefs.available': '1%', 'nodefs.inodesFree': '1%' },
    },
    serializeImagePulls: false,
    maxPods: 110,
    syncFrequency: '10s',
  };
}
