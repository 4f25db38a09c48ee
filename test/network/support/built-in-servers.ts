import { readFileSync } from 'node:fs';
import type { Container, ContainerStatus, Pod, PodSpec } from '../../../src/objects/types/core.generated.ts';
import { issueCertificate } from '../../support/certificates.ts';
import { type PodNetwork, until } from './pod-network.ts';
import { familyOf, ifThere } from './up-process.ts';

/** A server of a Pod, and what an honest client gets of it. */
interface Server {
  readonly container: Partial<Container>;
  readonly spec?: Partial<PodSpec>;
  readonly port: number;
  readonly path: string;
  readonly answer: RegExp;
  /** The port is one of TLS. */
  readonly isTls?: boolean;
  readonly udp?: number;
}

const agnhost = (port: number, path: string, answer: RegExp, ...args: string[]): Server => ({
  container: { image: 'registry.k8s.io/e2e-test-images/agnhost:2.53', args },
  ...{ port, path, answer },
});

const nameItem = { path: 'index.html', fieldRef: { fieldPath: 'metadata.name' } };

/** netexec by TLS, with a key pair of this folder. */
const overTls = (name: string, folder: string, pair: string): Server => ({
  ...agnhost(
    ...([8443, '/hostname', new RegExp(`^${name}$`), 'netexec', '--http-port=8443'] as const),
    ...[`--tls-cert-file=${folder}/${pair}.crt`, `--tls-private-key-file=${folder}/${pair}.key`],
  ),
  isTls: true,
});

const withFiles = (server: Server): Server => ({
  ...server,
  container: { ...server.container, volumeMounts: [{ name: 'files', mountPath: '/files' }] },
  spec: { volumes: [{ name: 'files', configMap: { name: 'files' } }] },
});

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
  guestbook: agnhost(80, '/get', /"data"/, 'guestbook'),
  'netexec-localhost': overTls('netexec-localhost', '', 'localhost'),
  'netexec-tls': withFiles(overTls('netexec-tls', '/files', 'tls')),
};

/** A listener, for `hostile-sender.ts`. */
export interface HostileTarget {
  readonly protocol: 'tcp' | 'tls' | 'udp' | 'unix' | 'peer';
  /** By `unix`: a path. */
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
    const { certificate, key } = issueCertificate({ subject: 'webhook', names: ['webhook.test'] });
    const answer = await pods.call('POST', pods.path('configmaps'), {
      metadata: { name: 'files' },
      data: { 'tls.crt': certificate, 'tls.key': key },
    });
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
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
    return Object.entries(servers).flatMap(([name, { port, udp, isTls = false }]): HostileTarget[] => {
      const address = this.addressOf(name);
      return [
        { protocol: 'tcp', address, port },
        ...(isTls ? [{ protocol: 'tls', address, port } as const] : []),
        ...(udp === undefined ? [] : [{ protocol: 'udp', address, port: udp } as const]),
      ];
    });
  }

  async statusOf(name: string): Promise<ContainerStatus | undefined> {
    const { body } = await this.#pods.call('GET', `${this.#pods.path('pods')}/${name}`);
    return (body as unknown as Pod).status.containerStatuses?.[0];
  }

  /** Resolves when each has answered an honest client. */
  async answer(): Promise<void> {
    for (const [name, { port, path, answer, isTls = false }] of Object.entries(servers)) {
      const address = this.addressOf(name);
      const url = `${isTls ? 'https' : 'http'}://${address}:${port}${path}`;
      const command = ['timeout', '5', 'curl', '-sk', '--max-time', '2', url] as const;
      await until(
        async () => (await this.#pods.server.run(command, { node: 'node-1' })).stdout,
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
