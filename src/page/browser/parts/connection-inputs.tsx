import { type Choice, ChoiceInput } from './choice-input.tsx';
import { usePage } from './page-context.ts';
import { PlaceSelect } from './view-parts.tsx';

/** What a connection is asked for by: its ends and its protocol. */

export const protocols = ['TCP', 'UDP', 'SCTP'] as const;

type Rows = ReturnType<typeof usePage>['rows'];

/** The ends of a connection. */
export interface Ends {
  readonly from: string;
  readonly to: string;
}

/** Both ends, with choices of this cluster. @param toPlaceholder what may be typed as the second. */
export function EndInputs(props: {
  readonly ends: Ends;
  readonly toPlaceholder: string;
  readonly onInput: (ends: Ends) => void;
}) {
  const { rows } = usePage();
  const { ends, toPlaceholder, onInput } = props;
  return (
    <>
      <ChoiceInput
        label="from"
        placeholder="deploy/shop/cart, pod/…, node/…, outside"
        value={ends.from}
        choices={sources(rows)}
        onInput={(from) => onInput({ ...ends, from })}
      />
      <ChoiceInput
        label="to"
        placeholder={toPlaceholder}
        value={ends.to}
        choices={destinations(rows)}
        onInput={(to) => onInput({ ...ends, to })}
      />
    </>
  );
}

/** Chooses the protocol of a place. */
export function ProtocolSelect(props: { readonly protocol: string; readonly isLabelHidden?: boolean }) {
  const { protocol: value, isLabelHidden = false } = props;
  return (
    <PlaceSelect
      {...{ name: 'protocol', label: 'protocol', isLabelHidden, class: 'field small', value }}
      choices={protocols.map((each) => [each, each] as const)}
    />
  );
}

/** What may send: for a choice. */
function sources(rows: Rows): readonly Choice[] {
  return [
    ...rows.all('workload').map(({ key, ready, pods }) => ({ value: key, note: `${ready}/${pods} ready` })),
    ...rows.all('pod').map(({ key, state }) => ({ value: `pod/${key}`, note: state })),
    ...rows.all('node').map(({ name }) => ({ value: `node/${name}`, note: 'node' })),
    { value: 'outside', note: 'a machine that is not of the cluster' },
  ];
}

/** What may be sent to. */
function destinations(rows: Rows): readonly Choice[] {
  return [
    ...rows.all('service').flatMap(({ key, ports, type }) =>
      ports
        .split(',')
        .filter((port) => port !== '<none>')
        .map((port) => ({ value: `svc/${key}:${/^\d+/.exec(port)?.[0] ?? ''}`, note: type })),
    ),
    ...rows.all('workload').map(({ key }) => ({ value: key, note: 'at a port of its Pods: add :8080' })),
    ...rows.all('pod').map(({ key, state }) => ({ value: `pod/${key}`, note: state })),
    { value: 'outside:443', note: 'a machine that is not of the cluster' },
  ];
}
