import { pushAll } from '../../../objects/lists.ts';
import type { ServicePort, ServiceSpec } from '../../../objects/types/core.generated.ts';
import {
  duplicate,
  forbiddenField,
  invalid,
  notSupported,
  required,
  type FieldError,
} from '../../validation/field-errors.ts';
import { isDNS1123Label, isQualifiedName } from '../../../objects/names.ts';
import { isValidPortNumber, validatePortNumberOrName } from '../../validation/network.ts';

const protocols = ['SCTP', 'TCP', 'UDP'];

/** The rules of each port, and the uniqueness of names (`apis/core/validation` validateServicePort). */
export function validatePorts(ports: readonly ServicePort[]): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  ports.forEach((port, i) => {
    const path = `spec.ports[${i}]`;
    const { name = '', protocol = '' } = port;
    if (name !== '') {
      for (const message of isDNS1123Label(name)) errors.push(invalid(`${path}.name`, name, message));
      if (names.has(name)) errors.push(duplicate(`${path}.name`, name));
      names.add(name);
    } else if (ports.length > 1) {
      errors.push(required(`${path}.name`));
    }
    for (const message of isValidPortNumber(port.port)) {
      errors.push(invalid(`${path}.port`, port.port, message));
    }
    if (protocol === '') errors.push(required(`${path}.protocol`));
    else if (!protocols.includes(protocol)) {
      errors.push(notSupported(`${path}.protocol`, protocol, protocols));
    }
    pushAll(errors, validatePortNumberOrName(port.targetPort ?? 0, `${path}.targetPort`));
    if (port.appProtocol !== undefined) {
      for (const message of isQualifiedName(port.appProtocol)) {
        errors.push(invalid(`${path}.appProtocol`, port.appProtocol, message));
      }
    }
  });
  return errors;
}

/** The rules of ports for the type, and their uniqueness by (protocol, number). */
export function validatePortUse({ type, ports = [] }: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const withNodePort = ports.some(({ nodePort = 0 }) => nodePort !== 0);
  if (type === 'ClusterIP' && withNodePort) {
    ports.forEach(({ nodePort = 0 }, i) => {
      if (nodePort === 0) return;
      errors.push(forbiddenField(`spec.ports[${i}].nodePort`, "may not be used when `type` is 'ClusterIP'"));
    });
  }
  if (ports.length < 2) return errors;
  if (withNodePort) pushNodePortRepeats(errors, ports);
  const seen = new Set<string>();
  ports.forEach(({ protocol = '', port }, i) => {
    const key = `${protocol}/${port}`;
    if (seen.has(key)) errors.push(duplicate(`spec.ports[${i}]`, portKey(protocol, port)));
    seen.add(key);
  });
  return errors;
}

function pushNodePortRepeats(errors: FieldError[], ports: readonly ServicePort[]): void {
  const seen = new Set<string>();
  ports.forEach(({ protocol = '', nodePort = 0 }, i) => {
    if (nodePort === 0) return;
    const key = `${protocol}/${nodePort}`;
    if (seen.has(key)) errors.push(duplicate(`spec.ports[${i}].nodePort`, nodePort));
    seen.add(key);
  });
}

/** The Go struct that kube-apiserver prints for a repeated port: only protocol and number are set. */
function portKey(protocol: string, port: number): object {
  return { Name: '', Protocol: protocol, AppProtocol: null, Port: port, TargetPort: 0, NodePort: 0 };
}
