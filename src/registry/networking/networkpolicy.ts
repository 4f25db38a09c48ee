import type {
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
} from '../../objects/types/networking.generated.ts';
import { addressBits, parseCidr, type ParsedCidr } from '../../objects/address.ts';
import { pushAll } from '../../objects/lists.ts';
import {
  declarative,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../validation/field-errors.ts';
import { validateLabelSelector } from '../validation/label-selector.ts';
import { isValidPortName, nameIsDNSSubdomain } from '../../objects/names.ts';
import { isValidPortNumber, validateLegacyCidr, warningsForCidr } from '../validation/network.ts';
import { genericStrategy, isSpecChanged } from '../generic/generic.ts';

const protocols = ['TCP', 'UDP', 'SCTP'];
const policyTypes = ['Ingress', 'Egress'];

/** Values of the stored policy that may stay in an update. */
export interface Exemptions {
  /** The stored pod selector has invalid values. */
  readonly invalidLabelValues: boolean;
  /** CIDRs of the stored policy, in any field. */
  readonly cidrs: readonly string[];
}

const noExemptions: Exemptions = { invalidLabelValues: false, cidrs: [] };

/** The rules of a policy's spec (`apis/networking/validation` ValidateNetworkPolicySpec). */
function validateNetworkPolicy({ spec }: NetworkPolicy, exempt: Exemptions): FieldError[] {
  const errors = validateLabelSelector(spec.podSelector, 'spec.podSelector', exempt.invalidLabelValues);
  for (const { path, peersPath, ports, peers } of rulesOf(spec)) {
    ports.forEach((port, i) => pushAll(errors, validatePort(port, `${path}.ports[${i}]`)));
    peers.forEach((peer, i) => pushAll(errors, validatePeer(peer, `${peersPath}[${i}]`, exempt)));
  }
  const types = spec.policyTypes ?? [];
  if (types.length > policyTypes.length) {
    errors.push(invalid('spec.policyTypes', types, 'may not specify more than two policyTypes'));
    return errors;
  }
  types.forEach((type, i) => {
    if (!policyTypes.includes(type)) errors.push(notSupported(`spec.policyTypes[${i}]`, type, policyTypes));
  });
  return errors;
}

function validatePort({ protocol, port, endPort }: NetworkPolicyPort, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (protocol !== undefined && !protocols.includes(protocol)) {
    errors.push(notSupported(`${path}.protocol`, protocol, protocols));
  }
  const end = (detail: string) => errors.push(invalid(`${path}.endPort`, endPort, detail));
  if (typeof port === 'number') {
    for (const message of isValidPortNumber(port)) errors.push(invalid(`${path}.port`, port, message));
    if (endPort === undefined) return errors;
    if (endPort < port) end('must be greater than or equal to `port`');
    for (const message of isValidPortNumber(endPort)) end(message);
    return errors;
  }
  if (endPort !== undefined) {
    end(`may not be specified when \`port\` is ${port === undefined ? 'not specified' : 'non-numeric'}`);
  }
  if (port !== undefined) {
    for (const message of isValidPortName(port)) errors.push(invalid(`${path}.port`, port, message));
  }
  return errors;
}

function validatePeer(peer: NetworkPolicyPeer, path: string, exempt: Exemptions): FieldError[] {
  const { podSelector, namespaceSelector, ipBlock } = peer;
  const lenient = exempt.invalidLabelValues;
  const errors = [
    ...validateLabelSelector(podSelector, `${path}.podSelector`, lenient),
    ...validateLabelSelector(namespaceSelector, `${path}.namespaceSelector`, lenient),
    ...(ipBlock === undefined ? [] : validateBlock(ipBlock, `${path}.ipBlock`, exempt.cidrs)),
  ];
  const selected = podSelector !== undefined || namespaceSelector !== undefined;
  if (ipBlock === undefined) {
    if (!selected) errors.push(required(path, 'must specify a peer'));
  } else if (selected) {
    errors.push(forbiddenField(path, 'may not specify both ipBlock and another peer'));
  }
  return errors;
}

function validateBlock(
  { cidr, except = [] }: NonNullable<NetworkPolicyPeer['ipBlock']>,
  path: string,
  exempt: readonly string[],
): FieldError[] {
  if (cidr === '') return [declarative(required(`${path}.cidr`))];
  const errors = validateLegacyCidr(cidr, `${path}.cidr`, exempt);
  const block = parseCidr(cidr);
  if (block === undefined) return errors;
  except.forEach((text, i) => {
    const at = `${path}.except[${i}]`;
    pushAll(errors, validateLegacyCidr(text, at, exempt));
    const part = parseCidr(text);
    if (part !== undefined && !isStrictSubset(part, block)) {
      errors.push(invalid(at, text, 'must be a strict subset of `cidr`'));
    }
  });
  return errors;
}

function isStrictSubset(part: ParsedCidr, whole: ParsedCidr): boolean {
  if (part.family !== whole.family || part.prefixLength <= whole.prefixLength) return false;
  const hostBits = BigInt(addressBits(whole.family) - whole.prefixLength);
  return part.network >> hostBits === whole.network >> hostBits;
}

/** One rule of either direction, with its path. */
export interface PlacedRule {
  readonly path: string;
  readonly peersPath: string;
  readonly ports: readonly NetworkPolicyPort[];
  readonly peers: readonly NetworkPolicyPeer[];
}

/** All rules of a policy, ingress first. */
function rulesOf({ ingress = [], egress = [] }: NetworkPolicy['spec']): PlacedRule[] {
  return [
    ...ingress.map(({ ports = [], from = [] }, i) => {
      const path = `spec.ingress[${i}]`;
      return { path, peersPath: `${path}.from`, ports, peers: from };
    }),
    ...egress.map(({ ports = [], to = [] }, i) => {
      const path = `spec.egress[${i}]`;
      return { path, peersPath: `${path}.to`, ports, peers: to };
    }),
  ];
}

/** The rules of NetworkPolicies (`pkg/registry/networking/networkpolicy/strategy.go`). */
export const networkPolicyStrategy = genericStrategy<NetworkPolicy>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  generationChanges: isSpecChanged,
  repeatsCreate: 'before',
  setDefaults(policy: Partial<Pick<NetworkPolicy, 'spec'>>) {
    const spec = (policy.spec ??= { podSelector: {} });
    for (const { ports } of rulesOf(spec)) {
      for (const port of ports) port.protocol ??= 'TCP';
    }
    if ((spec.policyTypes ?? []).length > 0) return;
    spec.policyTypes = (spec.egress ?? []).length === 0 ? ['Ingress'] : ['Ingress', 'Egress'];
  },
  validateCreate: (policy) => validateNetworkPolicy(policy, noExemptions),
  validateUpdate: (policy, old) => validateNetworkPolicy(policy, exemptionsOf(old)),
  warningsOnCreate: blockWarnings,
  warningsOnUpdate: blockWarnings,
});

function exemptionsOf({ spec }: NetworkPolicy): Exemptions {
  return {
    invalidLabelValues: validateLabelSelector(spec.podSelector, '').length > 0,
    cidrs: rulesOf(spec)
      .flatMap(({ peers }) => peers)
      .flatMap(({ ipBlock }) => (ipBlock === undefined ? [] : [ipBlock.cidr, ...(ipBlock.except ?? [])])),
  };
}

function blockWarnings({ spec }: NetworkPolicy): string[] {
  return rulesOf(spec).flatMap(({ peers, peersPath }) =>
    peers.flatMap(({ ipBlock: { cidr = '', except = [] } = {} }, i) => {
      const path = `${peersPath}[${i}].ipBlock`;
      return [
        ...warningsForCidr(cidr, `${path}.cidr`),
        ...except.flatMap((text, j) => warningsForCidr(text, `${path}.except[${j}]`)),
      ];
    }),
  );
}
