# fish completion of gpucap-top.
function __gpucap_top_pids
    gpucap-top --query pid,command --format csv,noheader 2>/dev/null | string replace ', ' \t
end
# The last word of a list with commas: what stands before it is kept.
function __gpucap_top_list
    set -l before (string match -r '^.*,' -- (string replace -r '^--[a-z]+=' '' -- (commandline -ct)))
    printf "$before%s\n" $argv
end
function __gpucap_top_fields
    __gpucap_top_list (gpucap-top --query-fields 2>/dev/null | string replace -r ' .*' '')
end
set -l events '__fish_seen_subcommand_from events'
complete -c gpucap-top -f
complete -c gpucap-top -n "not $events" -a events -d 'The event log'
complete -c gpucap-top -s h -l help -d 'Show the help'
complete -c gpucap-top -n "not $events" -s V -l version -d 'Show the version'
complete -c gpucap-top -n "not $events" -l once -d 'The table, once'
complete -c gpucap-top -n "not $events" -l json -d JSON
complete -c gpucap-top -n "not $events" -l csv -d 'Every field, separated by commas'
complete -c gpucap-top -n "not $events" -l query -x -a '(__gpucap_top_fields)' -d 'These fields only'
complete -c gpucap-top -n "not $events" -l format -x -a '(__gpucap_top_list csv noheader nounits)' -d 'Format of --query'
complete -c gpucap-top -n "not $events" -l query-fields -d 'List the fields'
complete -c gpucap-top -n "not $events" -l help-query -d 'List the fields'
complete -c gpucap-top -n "not $events" -l by -x -a 'user group command' -d Sums
complete -c gpucap-top -n "not $events" -l all -d 'The dead too'
complete -c gpucap-top -n "not $events" -l keep -x -d 'List the dead for so many seconds'
complete -c gpucap-top -n "not $events" -s l -l loop -x -d 'Look again every so many seconds'
complete -c gpucap-top -s p -l pid -x -a '(__gpucap_top_pids)' -d 'This process only'
complete -c gpucap-top -l dir -r -F -d 'Where to look'
complete -c gpucap-top -n "not $events" -l ascii -d 'Draw the screen with ASCII alone'
complete -c gpucap-top -n $events -s f -l follow -d 'Go on with what happens next'
complete -c gpucap-top -n $events -s c -l count -d 'Count by function'
complete -c gpucap-top -n $events -l json -d 'One JSON object a line'
complete -c gpucap-top -n $events -l csv -d 'Separated by commas'
complete -c gpucap-top -n $events -l gpu -x -d 'Number or UUID'
complete -c gpucap-top -n $events -l api -x -d 'Glob of the function'
complete -c gpucap-top -n $events -l size -x -d 'Bytes, such as >=64M'
complete -c gpucap-top -n $events -l result -x -a '(__gpucap_top_list success error OUT_OF_MEMORY INVALID_VALUE)' -d 'What the call gave'
complete -c gpucap-top -n $events -l operation -x -a '(__gpucap_top_list charge release refuse fail driver limit wait observe)' -d 'What happened'
