/** The replacement of an image's program that is not run: the built-in server, on the ports of the container. */
import type { Container, Pod, Probe } from '../../objects/types/core.generated.ts';
import type { ContainerExit } from '../../controllers/kubelet/container-runtime.ts';
import type { PodNetwork } from '../machines/namespace-sandboxes.ts';
import { type DeclaredPort, PodServer } from '../programs/pod-server.ts';
import { exposedPort } from './images.ts';
import type { ContainerProgram } from '../programs/program.ts';
import { isSidecar } from '../../objects/pods.ts';

/** Starts the server of one container. Ports of its Pod that another container has are left out. @throws the system's error. */
export async function startStandIn(
  pod: Pod,
  container: Container,
  { host, listenAt, node }: PodNetwork,
  isReady: () => boolean,
): Promise<ContainerProgram> {
  const { name = '', namespace = '' } = pod.metadata;
  const server = await PodServer.listen({
    ...{ host, addresses: listenAt, ports: ownPorts(pod, container) },
    identity: { pod: name, namespace, node: node.name, isReady },
  });
  const ended = Promise.withResolvers<ContainerExit>();
  return {
    ended: ended.promise,
    signal: () => {
      server.close();
      ended.resolve({ exitCode: 0 });
    },
  };
}

/** Each once: two containers may declare one, and so may one container by two names. */
function ownPorts({ spec }: Pod, container: Container): readonly DeclaredPort[] {
  // On a node, all Pods of an image would want one port.
  const portsOf = spec.hostNetwork === true ? declaredPorts : declaredOrExposed;
  const all = [...(spec.initContainers ?? []).filter(isSidecar), ...(spec.containers ?? [])];
  const before = all.slice(
    0,
    all.findIndex(({ name }) => name === container.name),
  );
  const taken = new Set(before.flatMap(portsOf).map(keyOf));
  const ports = new Map(portsOf(container).map((port) => [keyOf(port), port]));
  return [...ports].filter(([key]) => !taken.has(key)).map(([, port]) => port);
}

function keyOf({ protocol, port }: DeclaredPort): string {
  return `${protocol} ${port}`;
}

function declaredOrExposed(container: Container): readonly DeclaredPort[] {
  const port = (container.ports ?? []).length > 0 ? undefined : exposedPort(container.image ?? '');
  return port === undefined ? declaredPorts(container) : [{ protocol: 'TCP', port }];
}

function declaredPorts({ ports = [] }: Container): readonly DeclaredPort[] {
  return ports.flatMap(({ containerPort: port, protocol = 'TCP' }) =>
    protocol === 'TCP' || protocol === 'UDP' ? [{ protocol, port }] : [],
  );
}

/**
 * Whether a probe can ask the server: by HTTP or TCP, on a port that is declared. Others are about programs that are not
 * there.
 */
export function canBeAsked(container: Container, { httpGet, tcpSocket }: Probe): boolean {
  const port = httpGet?.port ?? tcpSocket?.port;
  if (port === undefined || httpGet?.scheme === 'HTTPS') return false;
  return (container.ports ?? []).some(
    ({ name, containerPort, protocol = 'TCP' }) =>
      protocol === 'TCP' && (port === containerPort || port === name),
  );
}
