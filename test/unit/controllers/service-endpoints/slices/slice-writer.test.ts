import { expect, it } from 'vitest';
import { Clients } from '../../../../../src/client/resource-client.ts';
import { endpointSlices } from '../../../../../src/client/resources.ts';
import type { Transport } from '../../../../../src/client/transport.ts';
import { SharedInformer } from '../../../../../src/client/informers/shared-informer.ts';
import { OwnWrites } from '../../../../../src/runtime/own-writes.ts';
import { SliceWriter } from '../../../../../src/controllers/service-endpoints/slices/slice-writer.ts';
import type { EndpointSlice } from '../../../../../src/objects/types/discovery.generated.ts';
import { StatusError } from '../../../../../src/objects/status.ts';
import { controllerContext } from '../../../../support/controller-context.ts';
import { FakeClock } from '../../../../support/fake-clock.ts';

const refusal = (causes: { reason: string; message: string }[] = []): StatusError =>
  new StatusError(403, 'Forbidden', 'no', { details: { causes } });

/** A writer to a server that refuses every create, and what it was asked. */
function writerWith(error: StatusError): { writer: SliceWriter; asked: string[] } {
  const asked: string[] = [];
  const transport: Transport = {
    server: 'https://test',
    request: (method, path) => {
      asked.push(`${method} ${path.split('/').at(-1) ?? ''}`);
      if (method === 'POST') return Promise.reject(error);
      const json = (): unknown => ({ kind: 'Status', apiVersion: 'v1', status: 'Success' });
      return Promise.resolve({ status: 200, headers: {}, bytes: Buffer.alloc(0), json });
    },
    stream: () => Promise.reject(new Error('no watches')),
    close: () => Promise.resolve(),
  };
  const context = { ...controllerContext(new FakeClock()), clients: new Clients(transport) };
  const informer = new SharedInformer({ ...context, resource: endpointSlices });
  const writes = new OwnWrites<EndpointSlice>({ context, enqueue: () => undefined }, informer);
  return { writer: new SliceWriter(context, informer, writes), asked };
}

const slice = (name: string, addressType: string): EndpointSlice => ({
  metadata: { name, namespace: 'ns', uid: name },
  addressType,
  endpoints: null,
  ports: null,
});
const writes = {
  create: [slice('new', 'IPv6')],
  update: [],
  delete: [slice('old', 'IPv6'), slice('left', 'IPv4')],
};
const owner = 'ns/web';

it('deletes the slices of one family where those of another are refused', async () => {
  const error = refusal();
  const { writer, asked } = writerWith(error);
  const { counts, failures } = await writer.write(writes, owner, new AbortController().signal);
  expect(asked).toEqual(['POST endpointslices', 'DELETE left']);
  expect(counts).toEqual({ created: 0, updated: 0, deleted: 1 });
  expect(failures).toEqual([{ attempt: 'failed to create EndpointSlice', error }]);
});

it('takes it for no failure that a namespace is being emptied', async () => {
  const { writer } = writerWith(refusal([{ reason: 'NamespaceTerminating', message: 'no' }]));
  const { failures } = await writer.write(writes, owner, new AbortController().signal);
  expect(failures).toEqual([]);
});

it('waits a minute for a slice of its own that other labels hide, and no longer', async () => {
  const clock = new FakeClock();
  const metadata = {
    ...{ name: 'web-1', namespace: 'ns', uid: 'slice', resourceVersion: '2', generation: 1 },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name: 'web', uid: 'web', controller: true }],
  };
  const stored = { ...slice('web-1', 'IPv4'), metadata };
  const transport: Transport = {
    server: 'https://test',
    request: () =>
      Promise.resolve({ status: 201, headers: {}, bytes: Buffer.alloc(0), json: (): unknown => stored }),
    stream: () => Promise.reject(new Error('no watches')),
    close: () => Promise.resolve(),
  };
  const context = { ...controllerContext(clock), clients: new Clients(transport) };
  const informer = new SharedInformer({ ...context, resource: endpointSlices });
  const writes = new OwnWrites<EndpointSlice>({ context, enqueue: () => undefined }, informer);
  const writer = new SliceWriter(context, informer, writes);
  const create = { create: [slice('web-1', 'IPv4')], update: [], delete: [] };
  await writer.write(create, 'ns/web', new AbortController().signal);
  informer.upsert(stored, false);
  expect(writer.hiddenMs('ns/web', 'web', [stored])).toBe(0);
  // Somebody has labelled it for another manager: it is there, and not among those of the Service.
  expect(writer.hiddenMs('ns/web', 'web', [])).toBe(60_000);
  // A Service that was made anew waits for nothing of the last one's.
  expect(writer.hiddenMs('ns/web', 'another', [])).toBe(0);
  await writer.write(create, 'ns/web', new AbortController().signal);
  await clock.advance(60_000);
  expect(writer.hiddenMs('ns/web', 'web', [])).toBe(0);
  await writer.write(create, 'ns/web', new AbortController().signal);
  informer.remove(stored);
  expect(writer.hiddenMs('ns/web', 'web', [])).toBe(0);
});
