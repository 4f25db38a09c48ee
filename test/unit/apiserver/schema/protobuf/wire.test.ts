import { expect, test } from 'vitest';
import generated from '../../../../../src/apiserver/schema/builtin.generated.json' with { type: 'json' };
import { builtinSchema } from '../../../../../src/apiserver/schema/builtin.ts';
import { messageOfKind, protobufMessage } from '../../../../../src/apiserver/schema/protobuf/wire.ts';

/**
 * Fields without a number here. kube-apiserver drops the first from what clients send (its feature is off by default)
 * and never writes the second (`ShardedListAndWatch` is off too), so that they are not missed.
 */
const unnumbered: ReadonlySet<string> = new Set([
  'core.v1.PodStatus nodeAllocatableResourceClaimStatuses',
  'meta.v1.ListMeta shardInfo',
]);

/** Types that no message has: lists are all alike, reviews are what webhooks answer, the others are in `unnumbered`. */
function isWithout(component: string): boolean {
  return (
    component.endsWith('List') ||
    component.startsWith('io.k8s.api.admission.v1.') ||
    /\.apiextensions\.v1\.Conversion(Review|Response)$/.test(component) ||
    component.endsWith('.NodeAllocatableResourceClaimStatus') ||
    component.endsWith('.ShardInfo')
  );
}

/** The names in JSON that a message writes, those of inlined messages included. */
function namesOf(message: string): Set<string> {
  const names = new Set<string>();
  for (const { name, type } of protobufMessage(message)?.values() ?? []) {
    if (name === undefined) for (const inner of namesOf(type)) names.add(inner);
    else names.add(name);
  }
  return names;
}

test('every field of every built-in type has a protobuf number', () => {
  const missing: string[] = [];
  for (const component of Object.keys(generated.types).filter((name) => !isWithout(name))) {
    const message = component.replace(
      /^(io\.k8s\.(api|(apimachinery|apiextensions-apiserver|kube-aggregator)\.pkg\.apis)|com\.github\.openshift\.api)\./,
      '',
    );
    if (protobufMessage(message) === undefined) missing.push(message);
    const names = namesOf(message).add('kind').add('apiVersion');
    for (const { name } of builtinSchema(component).fields) {
      if (!names.has(name)) missing.push(`${message} ${name}`);
    }
  }
  expect(missing.filter((each) => !unnumbered.has(each))).toEqual([]);
});

test('every list has its metadata and its items, also where its type has no message of its own', () => {
  const lists = Object.keys(generated.kinds).filter((key) => key.endsWith('List'));
  const without = lists.filter((key) => {
    const [apiVersion = '', kind = ''] = key.split(' ');
    const [version = '', group = ''] = apiVersion.split('/').reverse();
    const message = messageOfKind(group, version, kind);
    if (message === undefined) return false;
    return (
      [...namesOf(message)].filter((name) => ['metadata', 'items', 'groups', 'resources'].includes(name))
        .length === 0
    );
  });
  expect(lists.length).toBeGreaterThan(40);
  expect(without).toEqual([]);
  for (const kind of ['IPAddressList', 'ServiceCIDRList']) {
    expect(namesOf(messageOfKind('networking.k8s.io', 'v1', kind) ?? '')).toEqual(
      new Set(['metadata', 'items']),
    );
  }
});

test('no two fields of a message have the same name', () => {
  for (const component of Object.keys(generated.types)) {
    const message = component.replace(/^io\.k8s\.api\./, '');
    const names = [...(protobufMessage(message)?.values() ?? [])].map(({ name }) => name);
    const named = names.filter((name) => name !== undefined);
    expect(named, message).toEqual([...new Set(named)]);
  }
});
