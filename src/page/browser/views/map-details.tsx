import type { NodeRow, PodRow, ServiceRow } from '../../../view/rows/rows.ts';
import { kubectlLine } from '../parts/command-line.ts';
import { Command } from '../parts/commands.tsx';
import {
  Age,
  Code,
  counted,
  PlaceLink,
  podSigns,
  ServiceLink,
  Sign,
  Text,
  TroubleText,
  WhyChain,
} from '../parts/words.tsx';
import { usePage } from '../parts/page-context.ts';
import { placeOf, servicePlace, withQuery } from '../state/place.ts';

/** What is selected on the Map: `service/shop/web`, `pod/shop/web-1` or `node/node-1`. */
export function MapDetails({ selection }: { readonly selection: string }) {
  const { rows, place, go } = usePage();
  const [kind = '', ...key] = selection.split('/');
  const found =
    kind === 'service'
      ? rows.get('service', key.join('/'))
      : kind === 'pod'
        ? rows.get('pod', key.join('/'))
        : rows.get('node', key.join('/'));
  return (
    <aside class="details" aria-label="details">
      <button type="button" class="close quiet" onClick={() => go(withQuery(place, { sel: undefined }))}>
        <span aria-hidden="true">✕</span>
        <span class="hidden">close the details</span>
      </button>
      {found === undefined ? (
        <p class="muted">
          <Text>{key.join('/')}</Text> is not there (any more).
        </p>
      ) : 'clusterIP' in found ? (
        <ServiceDetails service={found} />
      ) : 'workload' in found ? (
        <PodDetails pod={found} />
      ) : (
        <NodeDetails node={found} />
      )}
    </aside>
  );
}

function Head({ kind, name }: { readonly kind: 'Service' | 'Pod' | 'Node'; readonly name: string }) {
  return (
    <>
      <p class="kind">{kind}</p>
      <h2>
        <Text>{name}</Text>
      </h2>
    </>
  );
}

function Notice({ trouble }: { readonly trouble: PodRow['trouble'] }) {
  if (trouble === undefined) return null;
  return (
    <p class="notice bad">
      <TroubleText trouble={trouble} />
    </p>
  );
}

function EventsLink({ about }: { readonly about: string }) {
  const { place } = usePage();
  return (
    <PlaceLink to={placeOf('events', place, { about })} class="button">
      Events
    </PlaceLink>
  );
}

function ServiceDetails({ service }: { readonly service: ServiceRow }) {
  const { place, rows } = usePage();
  const { key, namespace, name, type, clusterIP, external, ports, selector, whyNoEndpoint, whyNoAddress } =
    service;
  const pairs = Object.entries(selector ?? {}).map(([label, value]) => `${label}=${value}`);
  return (
    <>
      <Head kind="Service" name={key} />
      <p class="actions">
        <PlaceLink to={servicePlace(key, place)} class="button primary">
          Open
        </PlaceLink>
        <PlaceLink to={placeOf('way', place, { to: `svc/${key}` })} class="button">
          Way to it
        </PlaceLink>
        <EventsLink about={`service/${key}`} />
      </p>
      {whyNoEndpoint !== undefined && <WhyChain why={whyNoEndpoint} label="Why no endpoint" />}
      {whyNoAddress !== undefined && <WhyChain why={whyNoAddress} label="Why no address" />}
      <dl>
        <Fact name="Type">{type}</Fact>
        <Fact name="Cluster IP">
          <Code>{clusterIP}</Code>
        </Fact>
        {external !== '<none>' && (
          <Fact name="External">
            <Code>{external}</Code>
          </Fact>
        )}
        <Fact name="Ports">
          <Code>{ports.replaceAll(',', ', ')}</Code>
        </Fact>
        <Fact name="Selector">{pairs.length === 0 ? 'none' : <Code>{pairs.join(', ')}</Code>}</Fact>
        <Fact name="Age">
          <Age time={service.created} />
        </Fact>
      </dl>
      <Command line={kubectlLine(rows.cluster, '-n', namespace, 'describe', 'service', name)} />
    </>
  );
}

function PodDetails({ pod }: { readonly pod: PodRow }) {
  const { place, rows } = usePage();
  const { key, namespace, name, workload, state, addresses, node, services, restarts, trouble } = pod;
  return (
    <>
      <Head kind="Pod" name={key} />
      <p class="actions">
        <PlaceLink to={placeOf('way', place, { from: workload })} class="button primary">
          Way from here
        </PlaceLink>
        <PlaceLink to={placeOf('way', place, { to: `pod/${key}` })} class="button">
          Way to it
        </PlaceLink>
        <EventsLink about={`pod/${key}`} />
      </p>
      <Notice trouble={trouble} />
      <dl>
        <Fact name="State">
          <Sign {...podSigns[state]} /> {state}
        </Fact>
        <Fact name="Addresses">
          {addresses.length === 0 ? 'none yet' : <Code>{addresses.join(', ')}</Code>}
        </Fact>
        <Fact name="Node">
          {node === undefined ? (
            'not scheduled'
          ) : (
            <PlaceLink to={withQuery(place, { sel: `node/${node}` })}>{node}</PlaceLink>
          )}
        </Fact>
        <Fact name="Workload">
          <Text>{workload}</Text>
        </Fact>
        <Fact name="Services">
          {services.length === 0
            ? 'in no slice'
            : services.map((each) => <ServiceLink key={each} of={each} />)}
        </Fact>
        {restarts > 0 && <Fact name="Restarts">{restarts}</Fact>}
        <Fact name="Age">
          <Age time={pod.created} />
        </Fact>
      </dl>
      <Command line={kubectlLine(rows.cluster, '-n', namespace, 'describe', 'pod', name)} />
    </>
  );
}

function NodeDetails({ node }: { readonly node: NodeRow }) {
  const { place, rows } = usePage();
  const { name, addresses, zone, podCIDRs, pods, trouble } = node;
  return (
    <>
      <Head kind="Node" name={name} />
      <p class="actions">
        <PlaceLink to={placeOf('way', place, { from: `node/${name}` })} class="button primary">
          Way from here
        </PlaceLink>
        <EventsLink about={`node/${name}`} />
      </p>
      <Notice trouble={trouble} />
      <dl>
        <Fact name="State">
          <NodeState node={node} />
        </Fact>
        <Fact name="Pods">{counted(pods, 'Pod')}</Fact>
        <Fact name="Addresses">
          <Code>{addresses.join(', ')}</Code>
        </Fact>
        {zone !== undefined && (
          <Fact name="Zone">
            <Text>{zone}</Text>
          </Fact>
        )}
        <Fact name="Pod CIDRs">
          <Code>{podCIDRs.join(', ')}</Code>
        </Fact>
      </dl>
      <Command line={kubectlLine(rows.cluster, 'describe', 'node', name)} />
    </>
  );
}

/** `Ready`, `NotReady` since when, and whether it is being drained. */
export function NodeState({ node: { isReady, isCordoned, since } }: { readonly node: NodeRow }) {
  return (
    <span class={isReady ? '' : 'bad'}>
      <Sign
        tone={isReady ? (isCordoned ? 'warn' : 'good') : 'bad'}
        sign={isReady ? (isCordoned ? '◐' : '●') : '○'}
      />{' '}
      {isReady ? 'Ready' : 'NotReady'}
      {isCordoned && ', cordoned'}
      {!isReady && since !== undefined && (
        <>
          {' '}
          for <Age time={since} />
        </>
      )}
    </span>
  );
}

/** A name and its value in a list of them. */
export function Fact({
  name,
  children,
}: {
  readonly name: string;
  readonly children: preact.ComponentChildren;
}) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
