import { useState, useEffect } from 'preact/hooks';
import type {
  ServiceDetailRow,
  ServiceEndpoint,
  ServicePortRow,
  ServiceRow,
} from '../../../view/rows/rows.ts';
import { commandLine, kubectlLine } from '../parts/command-line.ts';
import { Command, CopyButton } from '../parts/commands.tsx';
import { usePage } from '../parts/page-context.ts';
import { Empty, Section } from '../parts/view-parts.tsx';
import { type Column, Table } from '../parts/virtual-list.tsx';
import { Age, Code, counted, PlaceLink, Reason, Sign, Text, TroubleText, WhyChain } from '../parts/words.tsx';
import { placeOf } from '../state/place.ts';
import { EventTable, newestFirst } from './events.tsx';
import { HttpTable } from './http.tsx';
import { Fact } from './map-details.tsx';
import type { ObjectAnswer } from '../../messages.ts';
import { plain } from '../../../objects/plain.ts';
import { objectOf } from '../state/session.ts';

const why: Column<ServiceEndpoint & { readonly key: string }> = {
  title: 'Why',
  class: 'wide',
  cell: ({ trouble }) => (trouble === undefined ? '' : <TroubleText trouble={trouble} />),
};

/** So many endpoints are shown until more are asked for. */
const firstEndpoints = 100;

/** All about one Service: the page to send to a colleague. */
export function ServiceView() {
  const { rows, place, isCurrent } = usePage();
  const { namespace = '', name = '' } = place.service ?? {};
  const key = `${namespace}/${name}`;
  const service = rows.get('service', key);
  const [hasYaml, setYaml] = useState(false);
  if (service === undefined) {
    return isCurrent ? (
      <Empty sentence={`There is no Service ${key}.`}>
        <PlaceLink to={placeOf('map', place, { ns: namespace })}>All Services of {namespace}</PlaceLink>
      </Empty>
    ) : null;
  }
  const detail = rows.get('serviceDetail', key);
  const { type, clusterIP, endpoints, whyNoEndpoint, whyNoAddress, trouble } = service;
  const rules = rows.all('httpRule').filter((rule) => detail?.ledToBy.includes(rule.key) === true);
  return (
    <article class="view service">
      <header class="service-head">
        <div>
          <p class="kind">Service · {type}</p>
          <h1>
            <span class="ns">
              <Text>{namespace}</Text>/
            </span>
            <Text>{name}</Text>
          </h1>
          <p class="muted">
            <Code>{[clusterIP, ...(detail?.dnsNames.slice(0, 1) ?? [])].join('  ')}</Code>
          </p>
        </div>
        {endpoints !== undefined && (
          <p
            class={`big-ready ${endpoints.ready === 0 ? 'bad' : endpoints.ready < endpoints.total ? 'warn' : 'good'}`}
          >
            <span>
              {endpoints.ready}
              <span class="of"> of {endpoints.total}</span>
            </span>{' '}
            ready
          </p>
        )}
        <p class="actions">
          <PlaceLink to={placeOf('way', place, { to: `svc/${key}` })} class="button primary">
            Way to it
          </PlaceLink>
          <PlaceLink to={placeOf('map', place, { ns: namespace, sel: `service/${key}` })} class="button">
            Map
          </PlaceLink>
          <button type="button" aria-expanded={hasYaml} onClick={() => setYaml(!hasYaml)}>
            YAML
          </button>
        </p>
      </header>
      {hasYaml && <YamlPanel kind="Service" namespace={namespace} name={name} />}
      {whyNoEndpoint !== undefined && <WhyChain why={whyNoEndpoint} label="Why no endpoint" />}
      {whyNoAddress !== undefined && <WhyChain why={whyNoAddress} label="Why no address" />}
      {trouble !== undefined && whyNoEndpoint === undefined && whyNoAddress === undefined && (
        <p class="notice bad">
          <TroubleText trouble={trouble} />
        </p>
      )}
      {detail !== undefined && (
        <>
          <div class="columns">
            <Section title="Ports">
              <Ports ports={detail.ports} />
            </Section>
            <Section title="Address">
              <Addresses service={service} detail={detail} />
            </Section>
          </div>
          <Section title="Endpoints" aside={counted(detail.endpoints.length, 'endpoint')}>
            <Endpoints endpoints={detail.endpoints} />
          </Section>
          <Slices service={key} />
          {detail.settings.length > 0 && (
            <Section title="Settings" aside="that change what it does" class="settings">
              <dl>
                {detail.settings.map(({ field, value }) => (
                  <Fact key={field} name={field}>
                    <Code>{value}</Code>
                  </Fact>
                ))}
              </dl>
            </Section>
          )}
          {rules.length > 0 && (
            <Section title="Led to by">
              <HttpTable rules={rules} />
            </Section>
          )}
        </>
      )}
      <Section title="Events">
        {rows.all('event').length === 0 ? (
          <p class="muted">nothing in the last hour</p>
        ) : (
          <EventTable events={newestFirst(rows.all('event'))} />
        )}
      </Section>
      <Section title="Try">
        {rows.cluster?.whyNoCheck === undefined && (
          <Command
            line={commandLine(
              ...['servicenet', 'run', ...(rows.cluster?.clusterFlags ?? [])],
              ...['--', 'curl', '-s', `http://${name}.${namespace}/`],
            )}
          />
        )}
        <Command line={kubectlLine(rows.cluster, '-n', namespace, 'describe', 'service', name)} />
      </Section>
    </article>
  );
}

function Ports({ ports }: { readonly ports: readonly ServicePortRow[] }) {
  if (ports.length === 0) return <p class="muted">no ports</p>;
  return (
    <Table
      name="ports"
      rows={ports.map((port) => ({ ...port, key: `${port.protocol} ${port.port} ${port.name}` }))}
      columns={[
        { title: 'Port', class: 'code', cell: ({ port, protocol }) => `${port}/${protocol}` },
        {
          title: 'Name',
          cell: ({ name, appProtocol }) => (
            <Text>{[name, appProtocol ?? ''].filter((each) => each !== '').join(' · ')}</Text>
          ),
        },
        { title: 'Node port', class: 'code', cell: ({ nodePort }) => nodePort ?? '–' },
        { title: 'Target port', class: 'code', cell: ({ targetPort }) => <Text>{targetPort}</Text> },
        {
          title: 'Leads to',
          cell: ({ targets }) =>
            targets.length === 0
              ? 'no endpoint'
              : targets
                  .map(({ port, endpoints }) => `${port} in ${counted(endpoints, 'endpoint')}`)
                  .join(', '),
        },
      ]}
    />
  );
}

function Addresses({ service, detail }: { readonly service: ServiceRow; readonly detail: ServiceDetailRow }) {
  const { place } = usePage();
  const { type, external, pools = [] } = service;
  return (
    <>
      {external === '<none>' ? (
        <p class="muted">none asked for ({type})</p>
      ) : (
        <p>
          <Code>{external}</Code>
          {pools.map((pool) => (
            <span key={pool}>
              {' '}
              from pool{' '}
              <PlaceLink to={placeOf('addresses', place, { pool })}>
                <Text>{pool}</Text>
              </PlaceLink>
            </span>
          ))}
        </p>
      )}
      {detail.pools !== undefined && detail.pools.length > 0 && (
        <ul class="fits">
          {detail.pools.map(({ pool, isFit, message }) => (
            <li key={pool}>
              <Sign tone={isFit ? 'good' : 'quiet'} sign={isFit ? '✓' : '·'} />{' '}
              <strong>
                <Text>{pool}</Text>
              </strong>{' '}
              <Text>{message}</Text>
            </li>
          ))}
        </ul>
      )}
      {detail.conditions.map(({ type: condition, status, reason, message, since }) => (
        <div key={condition} class="condition">
          <p>
            <Sign tone={status === 'True' ? 'good' : 'bad'} sign={status === 'True' ? '✓' : '✗'} />{' '}
            <Text>{condition}</Text> <Reason word={reason} tone={status === 'True' ? 'quiet' : 'bad'} />{' '}
            <span class="muted">
              <Age time={since} />
            </span>
          </p>
          <p class="muted">
            <Text>{message}</Text>
          </p>
        </div>
      ))}
    </>
  );
}

function Endpoints({ endpoints }: { readonly endpoints: readonly ServiceEndpoint[] }) {
  const { place } = usePage();
  const [isWhole, setWhole] = useState(false);
  if (endpoints.length === 0) return <p class="muted">none</p>;
  const shown = isWhole ? endpoints : endpoints.slice(0, firstEndpoints);
  return (
    <>
      <Table
        name="endpoints"
        rows={shown.map((endpoint) => ({ ...endpoint, key: `${endpoint.slice} ${endpoint.address}` }))}
        columns={[
          {
            title: 'State',
            cell: ({ ready, serving, terminating }) => (
              <span class="nowrap">
                <Sign
                  tone={ready ? 'good' : terminating ? 'quiet' : 'bad'}
                  sign={ready ? '●' : terminating ? '◌' : '○'}
                />{' '}
                {terminating
                  ? serving
                    ? 'terminating, serving'
                    : 'terminating'
                  : ready
                    ? 'ready'
                    : 'not ready'}
              </span>
            ),
          },
          { title: 'Address', class: 'code', cell: ({ address }) => <Text>{address}</Text> },
          {
            title: 'Pod',
            class: 'wide',
            cell: ({ pod }) =>
              pod === undefined ? (
                '–'
              ) : (
                <PlaceLink to={placeOf('map', place, { ns: pod.split('/')[0] ?? '', sel: `pod/${pod}` })}>
                  <Text>{pod.split('/')[1] ?? pod}</Text>
                </PlaceLink>
              ),
          },
          { title: 'Node', cell: ({ node }) => (node === undefined ? '–' : <Text>{node}</Text>) },
          {
            title: 'Zone',
            class: 'short',
            cell: ({ zone, hints }) => (
              <Text>
                {[zone ?? '–', ...(hints === undefined ? [] : [`for ${hints.join(', ')}`])].join(' ')}
              </Text>
            ),
          },
          ...(shown.some(({ trouble }) => trouble !== undefined) ? [why] : []),
        ]}
      />
      {shown.length < endpoints.length && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          {counted(endpoints.length - shown.length, 'endpoint')} more
        </button>
      )}
    </>
  );
}

function Slices({ service }: { readonly service: string }) {
  const { rows } = usePage();
  const slices = rows.all('slice').filter((slice) => slice.service === service);
  if (slices.length === 0) return null;
  return (
    <Section title="EndpointSlices" aside={counted(slices.length, 'slice')}>
      <Table
        name="EndpointSlices"
        rows={slices}
        columns={[
          { title: 'Name', class: 'wide', cell: ({ name }) => <Text>{name}</Text> },
          { title: 'Family', cell: ({ addressType }) => addressType },
          { title: 'Ports', class: 'code', cell: ({ ports }) => <Text>{ports.join(', ')}</Text> },
          { title: 'Endpoints', cell: ({ endpoints }) => endpoints.length },
          {
            title: 'Written by',
            cell: ({ managedBy }) => <Text>{managedBy === '' ? 'no label says' : managedBy}</Text>,
          },
        ]}
      />
    </Section>
  );
}

/** An object to read; its `managedFields` are folded. */
function YamlPanel(props: { readonly kind: string; readonly namespace: string; readonly name: string }) {
  const { kind, namespace, name } = props;
  const { atMs } = usePage();
  const [answer, setAnswer] = useState<ObjectAnswer | string>();
  useEffect(() => {
    objectOf(kind, namespace, name).then(setAnswer, (cause: unknown) => setAnswer(String(cause)));
  }, [kind, namespace, name]);
  if (answer === undefined) return <p class="muted">reading …</p>;
  if (typeof answer === 'string') return <p class="notice bad">{answer}</p>;
  return (
    <div class="yaml">
      {atMs !== undefined && <p class="muted">As it is now:</p>}
      <CopyButton text={answer.yaml} what="the YAML" />
      <pre tabIndex={0} aria-label={`YAML of ${kind} ${name}`}>
        {plainLines(answer.yaml)}
      </pre>
      {answer.managedFields !== '' && (
        <details>
          <summary>managedFields</summary>
          <pre tabIndex={0} aria-label="managedFields">
            {plainLines(answer.managedFields)}
          </pre>
        </details>
      )}
    </div>
  );
}

function plainLines(text: string): string {
  return text.split('\n').map(plain).join('\n');
}
