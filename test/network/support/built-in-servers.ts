import { readFileSync } from 'node:fs';
import type { Container, ContainerStatus, Pod, PodSpec } from '../../../src/objects/types/core.generated.ts';
import { type PodNetwork, until } from './pod-network.ts';
import { familyOf, ifThere } from './up-process.ts';

/** A server of a Pod, and what an honest client gets of it. */
interface Server {
  readonly container: Partial<Container>;
  readonly spec?: Partial<PodSpec>;
  readonly port: number;
  readonly path: string;
  readonly answer: RegExp;
  readonly udp?: number;
}

const agnhost = (port: number, path: string, answer: RegExp, ...args: string[]): Server => ({
  container: {
    image: 'registry.k8s.io/e2e-test-images/agnhost:2.53',
    args,
    env: ['POD_IP', 'NODE_IP'].map((name) => ({
      name,
      valueFrom: {
        fieldRef: {
          fieldPath: name === 'POD_IP' ? 'status.podIP' : 'status.hostIP',
        },
      },
    })),
  },
  ...{ port, path, answer },
});
const image = (name: string, path: string, answer: RegExp): Server => ({
  container: { image: `registry.k8s.io/e2e-test-images/${name}:1` },
  ...{ port: 80, path, answer },
});

const nameItem = { path: 'index.html', fieldRef: { fieldPath: 'metadata.name' } };

/** One Pod for each program that listens. */
export const servers: Readonly<Record<string, Server>> = {
  'stand-in': {
    container: {
      ports: [{ containerPort: 80 }, { containerPort: 53, protocol: 'UDP' }],
    },
    ...{ port: 80, path: '/hostname', answer: /^stand-in$/, udp: 53 },
  },
  documents: {
    container: { image: 'nginx', volumeMounts: [{ name: 'site', mountPath: '/usr/share/nginx/html' }] },
    spec: { volumes: [{ name: 'site', downwardAPI: { items: [nameItem] } }] },
    ...{ port: 80, path: '/index.html', answer: /^documents$/ },
  },
  netexec: { ...agnhost(8080, '/hostname', /^netexec$/, 'netexec'), udp: 8081 },
  liveness: agnhost(8080, '/started', /^\d/, 'liveness'),
  'test-webserver': agnhost(80, '/', /<pre>/, 'test-webserver'),
  guestbook: agnhost(80, '/get', /"data"/, 'guestbook'),
  'grpc-health-checking': agnhost(8080, '/x', /404/, 'grpc-health-checking'),
  'no-snat-test': agnhost(8080, '/whoami', /:\d+$/, 'no-snat-test'),
  'serve-hostname': agnhost(9376, '/', /^serve-hostname$/, 'serve-hostname'),
  net: agnhost(8889, '/x', /404/, 'net', '--serve=:8889'),
  httpd: image('httpd', '/', /It works/),
  nautilus: image('nautilus', '/data.json', /nautilus/),
};

/** A listener, for `hostile-sender.ts`. */
export interface HostileTarget {
  readonly protocol: 'tcp' | 'tls' | 'udp' | 'peer';
  readonly address: string;
  readonly port: number;
  /** By TLS: the protocol that is agreed on. */
  readonly alpn?: string;
}

/** Pods of all built-in programs that listen. */
export class BuiltInServers {
  readonly #pods: PodNetwork;
  readonly #addresses = new Map<string, string>();

  private constructor(pods: PodNetwork) {
    this.#pods = pods;
  }

  static async create(pods: PodNetwork): Promise<BuiltInServers> {
    const made = new BuiltInServers(pods);
    for (const [name, { container, spec = {} }] of Object.entries(servers)) {
      await pods.pod(name, name, container, { spec });
    }
    for (const name of Object.keys(servers)) {
      const [pod] = await pods.running(name, 1);
      made.#addresses.set(name, pod?.status.podIP ?? '');
    }
    return made;
  }

  addressOf(name: string): string {
    return this.#addresses.get(name) ?? '';
  }

  listeners(): readonly HostileTarget[] {
    return [
      ...Object.entries(servers).flatMap(([name, { port, udp }]): HostileTarget[] => [
        { protocol: 'tcp', address: this.addressOf(name), port },
        ...(udp === undefined
          ? []
          : [
              {
                protocol: 'udp',
                address: this.addressOf(name),
                port: udp,
              } as const,
            ]),
      ]),
      {
        protocol: 'tcp',
        address: this.addressOf('grpc-health-checking'),
        port: 5000,
      },
    ];
  }

  async statusOf(name: string): Promise<ContainerStatus | undefined> {
    const { body } = await this.#pods.call('GET', `${this.#pods.path('pods')}/${name}`);
    return (body as unknown as Pod).status.containerStatuses?.[0];
  }

  /** Resolves when each has answered an honest client. */
  async answer(): Promise<void> {
    for (const [name, { port, path, answer }] of Object.entries(servers)) {
      await until(
        async () =>
          await this.#pods.curl({ node: 'node-1' }, `http://${this.addressOf(name)}:${port}${path}`),
        (text) => answer.test(text.trim()),
      );
    }
  }
}

/** The process of all built-in programs of the networks of this process. */
export function programsProcess(): number | undefined {
  return familyOf(process)
    .map(Number)
    .find((pid) => {
      const words = ifThere(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0'));
      return words.some((word) => word.includes('built-in-programs.ts'));
    });
}
